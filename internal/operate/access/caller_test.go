package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestACallerMayWhatItsVerbsAndTagsSay(t *testing.T) {
	t.Parallel()
	f := func(c Caller, v Verb, tag string, want bool) {
		t.Helper()
		if got := c.May(v, tag); got != want {
			t.Errorf("%+v may %s %q: %t", c, v, tag, got)
		}
	}
	for _, v := range Verbs {
		f(Caller{}, v, "a", false)
		f(Caller{}, v, "", false)
		f(Everyone(), v, "a", true)
		f(Everyone(), v, "", true)
	}
	c := Caller{verbs: []Verb{Save, Read}, tags: []string{"order.*", "mail"}}
	f(c, Save, "order.close", true)
	f(c, Save, "order.", true)
	f(c, Save, "order", false)
	f(c, Save, "Order.close", false)
	f(c, Save, "mail", true)
	f(c, Save, "mail.send", false)
	f(c, Save, "", false)
	if !c.SomeTag(Save) || c.SomeTag(Work) || (Caller{verbs: []Verb{All}}).SomeTag(Read) {
		t.Error("some tag")
	}
	f(c, Read, "order.close", true)
	f(c, Work, "order.close", false)
	f(c, Work, "", false)
	f(c, SaveHTTP, "order.http", false) // Save does not include SaveHTTP
	f(Caller{verbs: []Verb{All}, tags: []string{"mail"}}, SaveHTTP, "mail", true)
	f(Caller{verbs: []Verb{All}}, Read, "", false)
	f(Caller{verbs: []Verb{"later"}, tags: []string{"*"}}, Read, "a", false)

	all := Caller{verbs: []Verb{Read}, tags: []string{"mail", "*"}}
	f(all, Read, "anything", true)
	if !all.AnyTag(Read) || all.AnyTag(Work) || c.AnyTag(Save) || (Caller{}).AnyTag(Read) ||
		!Everyone().AnyTag(Operate) {
		t.Error("any tag")
	}
}

func TestACallerIsLimitedToSomeOfItsVerbs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ has, only, want []Verb }{
		{[]Verb{All}, []Verb{Read, Observe}, []Verb{Read, Observe}},
		{[]Verb{Read, Change}, []Verb{Read, Observe}, []Verb{Read}},
		{[]Verb{Operate}, []Verb{Read, Observe}, []Verb{Observe}}, // it includes Observe
		{nil, []Verb{Read}, nil},
	} {
		c := Caller{name: "ci", verbs: tt.has, tags: []string{"a"}}
		got := c.Only(tt.only...)
		if !slices.Equal(got.verbs, tt.want) || got.Name() != "ci" || got.May(Read, "b") ||
			!slices.Equal(c.verbs, tt.has) {
			t.Errorf("%v only %v: %+v", tt.has, tt.only, got)
		}
	}
}

func TestSavingWhatSaysWhereToCallIsAVerbOfItsOwn(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]Verb{"http": SaveHTTP, "HTTP": Save, "http.": Save, "order.http": Save,
		"": Save} {
		if got := ToSave(tag); got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
}

func TestACallerTravelsInAContext(t *testing.T) {
	t.Parallel()
	if c := From(context.Background()); c.SomeTag(Read) || c.Name() != "" {
		t.Errorf("without a caller: %+v", c)
	}
	c := Caller{name: "ci", verbs: []Verb{Read}, tags: []string{"a"}}
	if got := From(WithCaller(context.Background(), c)); got.Name() != "ci" || !got.May(Read, "a") {
		t.Errorf("got %+v", got)
	}
}

func TestVerbsAndTagsAreRead(t *testing.T) {
	t.Parallel()
	verbs, err := ParseVerbs([]string{"save", " work ", "save", "all"})
	if err != nil || !slices.Equal(verbs, []Verb{Save, Work, All}) {
		t.Errorf("verbs %v, %v", verbs, err)
	}
	tags, err := ParseTags([]string{"order.*", " a:b/c-d_e ", "*", "order.*", strings.Repeat("x", 128) + "*"})
	if err != nil || len(tags) != 4 || tags[0] != "order.*" || tags[1] != "a:b/c-d_e" || tags[2] != "*" {
		t.Errorf("tags %q, %v", tags, err)
	}
	f := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	for _, bad := range []string{"", "Save", "pop", "*", "save,work"} {
		_, err := ParseVerbs([]string{"save", bad})
		f(err, "save, save_http, read, bodies, change, work, observe, operate, metrics, audit, register, schedule, "+
			"or all")
	}
	for _, bad := range []string{"", " ", "**", "a*b", "*a", "a b", "é", "a,b", "a\x00", strings.Repeat("x", 129)} {
		_, err := ParseTags([]string{"a", bad})
		f(err, "order.*")
	}
	_, err = ParseVerbs(nil)
	f(err, "may do nothing")
	_, err = ParseTags(nil)
	f(err, "may use none")
}

// A pattern that is accepted matches valid tags, and only those that it describes.
func FuzzParseTags(f *testing.F) {
	f.Add("order.*", "order.close")
	f.Add("*", "a")
	f.Add("a*b", "a*b")
	f.Add(" a ", "a")
	f.Fuzz(func(t *testing.T, pattern, tag string) {
		tags, err := ParseTags([]string{pattern})
		if err != nil {
			return
		}
		prefix, open := strings.CutSuffix(tags[0], "*")
		if len(tags) != 1 || prefix != "" && !delaytask.ValidTag(prefix) || prefix == "" && !open {
			t.Fatalf("%q is read as %q", pattern, tags)
		}
		c := Caller{verbs: []Verb{Read}, tags: tags}
		if want := tag == prefix || open && strings.HasPrefix(tag, prefix); c.May(Read, tag) != want {
			t.Errorf("%q stands for %q: %t", tags[0], tag, !want)
		}
	})
}
