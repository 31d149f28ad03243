package dashboard

import (
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
)

// speaker writes sentences about tasks of a tag in the language, the zone and the form of a page.
type speaker struct {
	*view
	tag string
}

func (s speaker) Form(code sentence.Code) string { return texts[said+string(code)][s.Lang] }

// gaps stand between two sentences.
var gaps = map[string]string{"en": " ", "zh": ""}

func (s speaker) Gap() string { return gaps[s.Lang] }

func (s speaker) Arg(parameter any) string {
	switch p := parameter.(type) {
	case sentence.Count:
		if p.AtLeast {
			return "≥" + s.N(p.N)
		}
		return s.N(p.N)
	case sentence.ID:
		return strconv.FormatInt(int64(p), 10)
	case sentence.Quote:
		return s.Redacted(s.tag, string(p))
	case time.Time:
		return s.Time(p)
	case time.Duration:
		return s.Span(p)
	default:
		return s.N(p)
	}
}

// Say writes a sentence about tasks of the tag. What others have written in it is without secrets.
func (v *view) Say(tag string, s sentence.Sentence) string { return s.Write(speaker{v, tag}) }

// SayAll writes sentences about tasks of the tag.
func (v *view) SayAll(tag string, t sentence.Text) string { return t.Write(speaker{v, tag}) }
