package sqlstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func accessToken(name string, n byte) row.AccessToken {
	return row.AccessToken{
		Name: name, Hash: [32]byte{0xff, '\'', 31: n}, Tags: []string{"order.*", "é"}, Verbs: []string{"save", "read"},
	}
}

func TestTokensAreCreatedReadAndDeleted(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		read := func() ([]row.AccessToken, row.Reading) {
			t.Helper()
			tokens, reading, err := s.AccessTokens(t.Context())
			if err != nil || reading.Time.IsZero() || reading.Server == "" {
				t.Fatal(tokens, reading, err)
			}
			return tokens, reading
		}
		none, before := read()
		if len(none) != 0 {
			t.Fatalf("an empty table has %+v", none)
		}
		lasting, passing, big := accessToken("b", 1), accessToken("a", 2), accessToken("A", 3)
		passing.Expires = before.Time.Add(time.Hour)
		big.Tags, big.Verbs = nil, nil
		for _, token := range []row.AccessToken{lasting, passing, big} {
			if there, err := s.CreateToken(t.Context(), token); there || err != nil {
				t.Fatalf("%s was there: %t, %v", token.Name, there, err)
			}
		}
		tokens, after := read()
		for i := range tokens {
			if c := tokens[i].Created; c < before.Time || c > after.Time {
				t.Errorf("%s was created at %s, between %s and %s", tokens[i].Name, c, before.Time, after.Time)
			}
			tokens[i].Created = 0
		}
		big.Tags, big.Verbs = []string{}, []string{}
		if want := []row.AccessToken{big, passing, lasting}; !reflect.DeepEqual(tokens, want) {
			t.Fatalf("read\n%+v\nwant\n%+v", tokens, want)
		}

		if there, err := s.CreateToken(t.Context(), lasting); !there || err != nil {
			t.Errorf("the same token again, as after a lost reply: %t, %v", there, err)
		}
		if _, err := s.CreateToken(t.Context(), accessToken("b", 9)); !errors.Is(err, sqlstore.ErrTokenExists) {
			t.Errorf("another token of the same name: %v", err)
		}
		if _, err := s.CreateToken(t.Context(), accessToken("c", 1)); err == nil {
			t.Error("one token has two names")
		}
		if err := s.DeleteToken(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"b", "B", ""} {
			if err := s.DeleteToken(t.Context(), name); !errors.Is(err, sqlstore.ErrNotFound) {
				t.Errorf("%q was deleted: %v", name, err)
			}
		}
		if tokens, _ := read(); len(tokens) != 2 || tokens[0].Name != "A" || tokens[1].Name != "a" {
			t.Errorf("left are %+v", tokens)
		}
	})
}

func TestABootstrapTokenEndsForGood(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		ended := func(want ...string) {
			t.Helper()
			tokens, _, err := s.AccessTokens(t.Context())
			must(t, err)
			got := []string{}
			for _, token := range tokens {
				if !token.Expires.IsZero() {
					got = append(got, token.Name)
				}
			}
			if !reflect.DeepEqual(got, append([]string{}, want...)) {
				t.Fatalf("ended are %q, want %q", got, want)
			}
		}
		create := func(name string, n byte, tag, verb string) {
			t.Helper()
			token := accessToken(name, n)
			token.Tags, token.Verbs = []string{tag}, []string{verb}
			_, err := s.CreateToken(t.Context(), token)
			must(t, err)
		}
		create("bootstrap-1", 1, "*", row.BootstrapVerb)
		create("reader", 2, "*", "read")
		create("orders", 3, "order.*", "all")
		whole := accessToken("reader", 4)
		whole.Tags, whole.Verbs = []string{"*"}, []string{"all"}
		if _, err := s.CreateToken(t.Context(), whole); !errors.Is(err, sqlstore.ErrTokenExists) {
			t.Error(err)
		}
		ended()
		create("admin", 5, "*", "all")
		ended("bootstrap-1")

		create("bootstrap-2", 6, "*", row.BootstrapVerb)
		must(t, s.EndBootstrap(t.Context()))
		create("bootstrap-3", 7, "*", row.BootstrapVerb)
		for range 2 {
			must(t, s.DeleteToken(t.Context(), "bootstrap-3"))
		}
		must(t, s.DeleteToken(t.Context(), "admin"))
		ended("bootstrap-1", "bootstrap-2", "bootstrap-3")
	})
}
