package access

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

const random = "Zm9vYmFyLSsvPWJhejEyMzQ1"

func bootstrap(t *testing.T, variable, value string) *row.AccessToken {
	t.Helper()
	token, err := BootstrapFromEnv(func(name string) string { return map[string]string{variable: value}[name] })
	servertest.OK(t, err)
	return token
}

func TestOnlyTheHashOfABootstrapTokenIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	servertest.OK(t, os.WriteFile(path, []byte(random+"\r\n"), 0o600))
	for variable, value := range map[string]string{BootstrapVar: random, BootstrapFileVar: path} {
		token := bootstrap(t, variable, value)
		if token.Hash != sha256.Sum256([]byte(random)) || !slices.Equal(token.Tags, []string{"*"}) ||
			!slices.Equal(token.Verbs, []string{"bootstrap"}) || !strings.HasPrefix(token.Name, "bootstrap-") {
			t.Errorf("%s gives %+v", variable, token)
		}
	}
	if token := bootstrap(t, "", ""); token != nil {
		t.Errorf("nothing gives %+v", token)
	}
	if _, err := ParseVerbs([]string{row.BootstrapVerb}); !errors.Is(err, ErrInvalid) {
		t.Errorf("people may ask for its verb: %v", err)
	}
}

func TestABootstrapTokenOfNoRandomSourceIsRefused(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "token")
	servertest.OK(t, os.WriteFile(empty, []byte("\n"), 0o600))
	f := func(value, path, want string) {
		t.Helper()
		given := map[string]string{BootstrapVar: value, BootstrapFileVar: path}
		token, err := BootstrapFromEnv(func(name string) string { return given[name] })
		if token != nil || err == nil || !strings.Contains(err.Error(), want) ||
			value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("%q %q: %v, %v", value, path, token, err)
		}
	}
	f(random[:23], "", "has 23 characters: want 24 to 200; make one with: openssl rand -base64 32")
	f(strings.Repeat(random, 10), "", "has 240 characters")
	f(strings.Repeat("abcdefg", 5), "", "7 different characters")
	f("Change-Me-"+random, "", "of the example; make one with")
	f(random+" "+random, "", "a header cannot have")
	f(random+"é", "", "a header cannot have")
	f(random, empty, "are both set")
	f("", empty, "DELAYTASK_BOOTSTRAP_TOKEN_FILE: invalid access: the token has 0 characters")
	f("", empty+"s", "DELAYTASK_BOOTSTRAP_TOKEN_FILE: open ")
}

func TestABootstrapTokenMayDoEverythingUntilThereIsAWholeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, _ := start(t, 0)
		boot := *bootstrap(t, BootstrapVar, random)
		shows := func(missing bool, want error, list ...row.AccessToken) {
			t.Helper()
			time.Sleep(fresh)
			r.set(func() { r.tokens = list })
			c, err := tokens.Check(t.Context(), random)
			if !errors.Is(err, want) || (err == nil) != (c.AnyTag(SaveHTTP) && c.AnyTag(Audit)) {
				t.Errorf("%+v: %+v, %v", list, c, err)
			}
			if got, err := tokens.Missing(t.Context()); got != missing || err != nil {
				t.Errorf("%+v: missing %t, %v", list, got, err)
			}
		}
		ended := boot
		ended.Expires = 1
		shows(true, ErrUnauthorized)
		shows(true, ErrBootstrapEnded, ended)
		shows(false, nil, boot, row.AccessToken{Tags: []string{"order.*"}, Verbs: []string{"all"}})
		shows(false, ErrBootstrapEnded, boot, row.AccessToken{Tags: []string{"*"}, Verbs: []string{"all"}})
		shows(false, ErrUnauthorized) // one that was there makes a server ready for good
	})
}
