// Package sentence has what delaytask tells people of tasks, schedules and databases. A sentence is a code with typed
// parameters. Its English form stands here. The dashboard has forms of the same codes in other languages.
package sentence

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sentence is a sentence, or a part of one. Its parameters are numbers (int, int64), [Count], [ID], time.Time,
// time.Duration, names (string), [Quote], and sentences.
type Sentence struct {
	Code Code
	Args []any
}

// Of returns a sentence.
func Of(code Code, args ...any) Sentence { return Sentence{code, args} }

// Count is a number, exact or a lower bound.
type Count struct {
	N       int64
	AtLeast bool
}

// ID is the id of a task. It is a name more than a number.
type ID int64

// Quote is a text that a task, a processor or a person has written. It may hold a secret.
type Quote string

// Writer writes in one language, for one reader.
type Writer interface {
	Form(code Code) string    // that Fill can fill
	Arg(parameter any) string // any but a sentence
	Gap() string              // between two sentences
}

// Write writes the sentence.
func (s Sentence) Write(w Writer) string {
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		if part, ok := arg.(Sentence); ok {
			args[i] = part.Write(w)
		} else {
			args[i] = w.Arg(arg)
		}
	}
	return Fill(w.Form(s.Code), args...)
}

// Text is sentences, one after the other.
type Text []Sentence

// Write writes the text.
func (t Text) Write(w Writer) string {
	written := make([]string, len(t))
	for i, s := range t {
		written[i] = s.Write(w)
	}
	return strings.Join(written, w.Gap())
}

// Fill puts parameters into a form. A form with a "|" has one for the number 1 and one for others; the first parameter
// says which.
func Fill(form string, args ...any) string {
	if one, many, counted := strings.Cut(form, "|"); counted {
		form = many
		if len(args) > 0 && fmt.Sprint(args[0]) == "1" {
			form = one
		}
	}
	if len(args) == 0 || !strings.Contains(form, "%") {
		return form
	}
	return fmt.Sprintf(form, args...)
}

// English writes the sentence as the library, the service and the command do.
func (s Sentence) English() string { return s.Write(plain{}) }

// English writes the text as the library, the service and the command do.
func (t Text) English() string { return t.Write(plain{}) }

type plain struct{}

func (plain) Form(code Code) string { return English[code] }
func (plain) Gap() string           { return " " }

func (plain) Arg(parameter any) string {
	switch p := parameter.(type) {
	case Count:
		if p.AtLeast {
			return strconv.FormatInt(p.N, 10) + " or more"
		}
		return strconv.FormatInt(p.N, 10)
	case time.Time:
		return p.UTC().Format("2006-01-02T15:04:05.000Z")
	default:
		return fmt.Sprint(parameter)
	}
}
