package config

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/delaytask/delaytask"
)

// part ties a name in the file to a field. A part of a [Tag], a [Receiver] or a [Schedule] is optional: one that is
// left out is neither checked nor printed.
type part[S any] struct {
	name string
	set  func(of *S, value any) error
	get  func(of S) (value any, isSet bool)
}

var tagSettings = []part[Tag]{
	partOf("concurrency", integer(1, 100_000), func(t *Tag) *int { return &t.Concurrency }),
	{
		name: "timeout",
		set: func(t *Tag, value any) (err error) {
			t.Timeout, err = duration(0, year)(value)
			t.NoTimeout = t.Timeout == 0
			return err
		},
		get: func(t Tag) (any, bool) { return t.Timeout, t.Timeout != 0 || t.NoTimeout },
	},
	partOf("ttr", duration(time.Second, day), func(t *Tag) *time.Duration { return &t.TTR }),
	partOf("max_attempts", integer(1, 1_000_000), func(t *Tag) *int { return &t.MaxAttempts }),
}

var receiverSettings = []part[Receiver]{
	{
		name: "url",
		set:  partOf("", text(1), func(w *Receiver) *string { return &w.URL }).set,
		get:  func(w Receiver) (any, bool) { return maskURL(w.URL), w.URL != "" },
	},
	partOf("method", choice("get", "post", "put", "patch", "delete"), func(w *Receiver) *string { return &w.Method }),
	{
		name: "secrets",
		set: func(w *Receiver, value any) (err error) {
			w.Secrets, err = list(value)
			return err
		},
		get: func(w Receiver) (any, bool) { return masked, len(w.Secrets) > 0 },
	},
	partOf("pass_rule", text(0), func(w *Receiver) *string { return &w.PassRule }),
	partOf("concurrency", integer(1, 100_000), func(w *Receiver) *int { return &w.Concurrency }),
}

// partOf makes a part of a parser and the field that the parsed value goes to.
func partOf[S, T any](name string, parse func(any) (T, error), field func(*S) *T) part[S] {
	return part[S]{
		name: name,
		set: func(of *S, value any) (err error) {
			*field(of), err = parse(value)
			return err
		},
		get: func(of S) (any, bool) {
			return *field(&of), !reflect.ValueOf(field(&of)).Elem().IsZero()
		},
	}
}

func find[S any](parts []part[S], name string) (part[S], bool) {
	for _, p := range parts {
		if p.name == name {
			return p, true
		}
	}
	return part[S]{}, false
}

// setPart sets the part that is named below the tag, unless it is to skip a known one.
func setPart[S any](of *map[string]S, parts []part[S], tag string, below []string, value any, skip bool) error {
	p, known := find(parts, below[0])
	if !known || len(below) > 1 {
		names := make([]string, len(parts))
		for i, p := range parts {
			names[i] = p.name
		}
		return unknown(names, below[0])
	}
	if skip {
		return nil
	}
	s := (*of)[tag]
	if err := p.set(&s, value); err != nil {
		return err
	}
	if *of == nil {
		*of = make(map[string]S)
	}
	(*of)[tag] = s
	return nil
}

// setTag takes the path below tags: the tag and the name of its setting.
func (c *Config) setTag(path []string, value any) error {
	switch {
	case len(path) > 0 && !delaytask.ValidTag(path[0]):
		return delaytask.ErrInvalidTag
	case len(path) < 2 && isEmpty(value):
		return nil
	case len(path) < 2:
		return errors.New("want the settings of tags: tags, below it the tag, below that its settings")
	}
	return setPart(&c.Tags, tagSettings, path[0], path[1:], value, isEmpty(value))
}

// setReceiver takes the path below receivers: the tag and the name of its setting.
func (c *Config) setReceiver(path []string, value any) error {
	switch {
	case len(path) == 0 && isEmpty(value):
		return nil
	case len(path) == 0:
		return fmt.Errorf("want tags, and below each the address that is called; the number %v of tasks at once is "+
			"called concurrency", value)
	case !delaytask.ValidTag(path[0]):
		return delaytask.ErrInvalidTag
	case len(path) < 2:
		return errors.New("want the settings of a receiver below the tag, such as url")
	}
	return setPart(&c.Receivers, receiverSettings, path[0], path[1:], value, false)
}
