package access

import (
	"crypto/sha256"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

func TestANewTokenIsRandomAndOnlyItsHashIsStored(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^dt_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		secret, token, err := New("ci", []string{"order.*"}, []Verb{Save, Work}, 7)
		if err != nil || !shape.MatchString(secret) || seen[secret] {
			t.Fatalf("%q, %v", secret, err)
		}
		seen[secret] = true
		if token.Hash != sha256.Sum256([]byte(secret)) || token.Name != "ci" || token.Expires != 7 ||
			!slices.Equal(token.Tags, []string{"order.*"}) || !slices.Equal(token.Verbs, []string{"save", "work"}) {
			t.Fatalf("stored is %+v", token)
		}
	}
}

func TestATokenThatMakesNoSenseIsNotMade(t *testing.T) {
	t.Parallel()
	f := func(name string, tags []string, verbs []Verb) {
		t.Helper()
		secret, token, err := New(name, tags, verbs, 0)
		if !errors.Is(err, ErrInvalid) || secret != "" || token.Hash != (row.AccessToken{}).Hash {
			t.Errorf("%.20q %q %q: %q, %v", name, tags, verbs, secret, err)
		}
	}
	f("", []string{"a"}, []Verb{Save})
	f("a b", []string{"a"}, []Verb{Save})
	f(strings.Repeat("n", 129), []string{"a"}, []Verb{Save})
	f("ci", nil, []Verb{Save})
	f("ci", []string{"a b"}, []Verb{Save})
	f("ci", []string{"a"}, nil)
	f("ci", []string{"a"}, []Verb{"pop"})
}
