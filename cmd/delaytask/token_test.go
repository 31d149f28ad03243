package main

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/operate/access"
)

var tokenShape = regexp.MustCompile(`^dt_[A-Za-z0-9_-]{43}$`)

func TestTheHelpSaysWhatEachVerbAllows(t *testing.T) {
	t.Parallel()
	help := newShell(t).ok("token", "create", "--help")
	for _, verb := range append(access.Verbs, access.All) {
		contains(t, help, "\n  "+string(verb)+" ")
	}
}

func TestTokensAreCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.ok("token", "list"), "There are no tokens.")

	r := s.run("token", "create", "shop", "--tags", "order.*,mail", "--tags", "sms", "--verbs", "save, work")
	secret, line := strings.CutSuffix(r.stdout, "\n")
	if r.code != exitDone || !line || !tokenShape.MatchString(secret) {
		t.Fatalf("create: code %d, printed %q", r.code, r.stdout)
	}
	contains(t, r.stderr, "shop", "verbs save work", "tags order.* mail sms", "until it is revoked", "not shown again")
	var passing struct {
		Token string
		tokenView
	}
	s.decode(&passing, "token", "create", "ci", "--tags", "*", "--verbs", "all", "--expires", "30d")
	if !tokenShape.MatchString(passing.Token) || passing.Token == secret || time.Time(passing.Expires).IsZero() ||
		passing.Expired {
		t.Errorf("created %+v", passing)
	}

	var list []tokenView
	s.items(&list, "token", "list")
	if len(list) != 2 || list[0].Name != "ci" || list[0].Expires != passing.Expires || list[1].Name != "shop" ||
		!slices.Equal(list[1].Tags, []string{"order.*", "mail", "sms"}) ||
		!slices.Equal(list[1].Verbs, []string{"save", "work"}) || time.Time(list[1].Created).IsZero() ||
		!time.Time(list[1].Expires).IsZero() || list[1].Expired {
		t.Errorf("listed %+v", list)
	}
	contains(t, s.ok("token", "list"), "NAME", "order.* mail sms", "save work", "never")

	s.exec("UPDATE delay_task_token SET expire_time = '2020-01-01 00:00:00.000000' WHERE name = 'ci'")
	if s.items(&list, "token", "list"); !list[0].Expired {
		t.Errorf("an expired token is %+v", list[0])
	}
	contains(t, s.ok("token", "list"), "2020-01-01T00:00:00.000Z (expired)")

	contains(t, s.ok("token", "revoke", "ci"), "Revoked ci")
	var revoked struct {
		Name    string
		Revoked bool
	}
	if s.decode(&revoked, "token", "revoke", "shop"); revoked.Name != "shop" || !revoked.Revoked {
		t.Errorf("revoked %+v", revoked)
	}
	if s.items(&list, "token", "list"); len(list) != 0 {
		t.Errorf("left are %+v", list)
	}
}

// A token is printed once, when it is created, and its hash never.
func TestNothingShowsATokenAgain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	secret := strings.TrimSpace(s.ok("token", "create", "shop", "--tags", "*", "--verbs", "all"))
	hash := sha256.Sum256([]byte(secret))
	again := "token create shop --tags * --verbs all"
	for _, line := range []string{"token list", "token list --json", again, "token revoke shop"} {
		r := s.run(strings.Fields(line)...)
		shown := strings.ToLower(r.stdout + r.stderr)
		for _, part := range []string{secret[3:12], hex.EncodeToString(hash[:])[:10]} {
			if strings.Contains(shown, strings.ToLower(part)) {
				t.Errorf("%s shows %s:\n%s", line, part, shown)
			}
		}
	}
}
