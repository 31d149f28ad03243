package compat

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// command is a request of either protocol, in its own units of time.
type command struct {
	command string
	topic   string
	id      string
	body    string
	delay   int64 // never negative: a past time means now
	ttr     int64 // 0: not given
	wait    int64 // 0: not given
	max     int64
	many    bool // max is given
}

// The names of the fields come in any letter case: one protocol writes TTR, the other ttr.
var lenient = json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true))

// decode reads one JSON object. It ignores unknown members, and of duplicates the last counts.
func decode(data []byte) (command, error) {
	var fields struct {
		Command jsontext.Value `json:"command"`
		Topic   jsontext.Value `json:"topic"`
		ID      jsontext.Value `json:"id"`
		Body    jsontext.Value `json:"body"`
		Delay   jsontext.Value `json:"delay"`
		TTR     jsontext.Value `json:"ttr"`
		Wait    jsontext.Value `json:"wait"`
		Max     jsontext.Value `json:"max"`
	}
	if err := json.Unmarshal(data, &fields, lenient); err != nil {
		return command{}, malformed(err)
	}
	p := &parser{}
	return p.finish(command{
		command: p.text("command", fields.Command),
		topic:   p.text("topic", fields.Topic),
		id:      p.text("id", fields.ID),
		body:    p.anyText(fields.Body),
		delay:   max(p.number("delay", fields.Delay), 0),
		ttr:     p.number("TTR", fields.TTR),
		wait:    p.number("wait", fields.Wait),
		max:     p.number("max", fields.Max),
		many:    given(fields.Max),
	})
}

// malformed reports the position but not the text: a body may contain a secret.
func malformed(err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return clientError(fmt.Sprintf("the request is not well-formed JSON in UTF-8 (at byte %d)",
			syntactic.ByteOffset))
	}
	return clientError("the request is not a JSON object")
}

// decodeQuery reads the parameters of a GET.
func decodeQuery(raw string) (command, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return command{}, clientError("the query cannot be read; encode its values")
	}
	p := &parser{}
	one := func(name string) string {
		if len(query[name]) > 1 {
			p.refuse(name, "is given twice")
		}
		return query.Get(name)
	}
	number := func(name string) int64 {
		if !query.Has(name) {
			return 0
		}
		return p.whole(name, one(name))
	}
	return p.finish(command{
		topic: one("topic"), id: one("id"), wait: number("wait"), max: number("max"), many: query.Has("max"),
	})
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) refuse(name, why string) {
	if p.err == nil {
		p.err = clientError(name + " " + why)
	}
}

func (p *parser) finish(r command) (command, error) {
	switch {
	case p.err != nil:
		return command{}, p.err
	case r.wait < 0:
		return command{}, clientError("wait is negative")
	case r.many && r.max < 1:
		return command{}, clientError("max is less than 1")
	}
	return r, nil
}

func given(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// text reads a string. Ids and topics that are whole numbers come as numbers from some clients.
func (p *parser) text(name string, v jsontext.Value) string {
	switch {
	case !given(v):
		return ""
	case v.Kind() == '"':
		return p.unquoted(name, v)
	case v.Kind() == '0' && !strings.ContainsAny(string(v), ".eE"):
		return string(v)
	default:
		p.refuse(name, "is not a string")
		return ""
	}
}

func (p *parser) unquoted(name string, v jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		p.refuse(name, "is not a string in UTF-8")
	}
	return string(text)
}

// anyText is the content of a string, and of any other value its JSON.
func (p *parser) anyText(v jsontext.Value) string {
	switch {
	case !given(v):
		return ""
	case v.Kind() == '"':
		return p.unquoted("body", v)
	default:
		return string(v)
	}
}

// number reads a whole number, or one in a string.
func (p *parser) number(name string, v jsontext.Value) int64 {
	switch {
	case !given(v):
		return 0
	case v.Kind() == '"':
		return p.whole(name, p.unquoted(name, v))
	default:
		return p.whole(name, string(v))
	}
}

func (p *parser) whole(name, text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		p.refuse(name, "is out of range")
		return 0
	}
	if err != nil {
		p.refuse(name, "is not a whole number")
	}
	return n
}
