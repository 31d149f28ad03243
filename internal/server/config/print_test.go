package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestPrintedSettingsCanBeReadBack(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Concurrency, c.Timeout, c.Node.Name = 3, 0, "007"
	c.Tags = map[string]Tag{"a.b": {NoTimeout: true, TTR: 90 * time.Second}, "c/d:e": {Concurrency: 1, MaxAttempts: 2}}
	c.Server.Hosts, c.Server.TLS = []string{"a.example", "b.example"}, TLS{Cert: "c.pem", Key: "k.pem"}
	c.Receivers = map[string]Receiver{"a.b": {URL: "https://example.com/x", PassRule: `{"code":1}`}}
	c.SchedulesRevision = time.Unix(1.7e9, 1000).UTC()
	c.Schedules = map[string]Schedule{"a/b.c": {
		Schedule: delaytask.Schedule{
			Tag: "t", TTR: time.Minute, MaxAttempts: 2, Priority: -3, Overlap: "allow", MaxOpen: 4, Missed: "all",
			StartWithin: 5 * time.Hour, Jitter: 6 * time.Second, PauseAfter: 7, MaxRuns: 8, KeepRuns: 9,
			RetryPastNext: true, Spec: delaytask.Spec{
				Zone: "Europe/Berlin", DST: "skip", Start: time.Unix(1.7e9, 0).UTC(), End: time.Unix(2e9, 0).UTC(),
			},
		},
		Cron: []string{"0,30 2 * * *", "@daily"}, Every: "24h/2h", At: []string{"2027-01-01T09:00"},
		Except: []string{"2027-12-24"}, Body: `{"n":1}`, App: "shop", Headers: []string{"a=b"},
	}}
	var printed strings.Builder
	servertest.OK(t, c.Print(&printed))
	got, err := Load(Source{Path: writeFile(t, printed.String())})
	got.DSNFrom = "" // now the file
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got  %+v, %v\nwant %+v\nfrom\n%s", got, err, c, printed.String())
	}
}

func TestPasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	c := Default()
	c.DSN = "root:canary@tcp(localhost:3306)/app"
	c.Secret = "canary-that-seals"
	c.Receivers = map[string]Receiver{
		"t": {URL: "https://example.com", Secrets: []string{"whsec_canary"}},
		"u": {URL: "https://canary:canary@example.com/hook?key=canary&canary#canary"},
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("start", "config", c)
	asJSON, err := json.Marshal(c)
	servertest.OK(t, err)
	for name, text := range map[string]string{
		"Print": c.String(), "JSON": string(asJSON),
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "pointer": fmt.Sprint(&c),
		"slog": logged.String(),
	} {
		if strings.Contains(text, "canary") || !strings.Contains(text, "root:***@tcp(localhost:3306)/app") {
			t.Errorf("%s shows %s", name, text)
		}
	}
}

func TestKeysInAddressesOfReceiversAreMasked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://example.com":                     "https://example.com",
		"https://example.com:8443/a/b":            "https://example.com:8443/a/b",
		"https://u:p@example.com/a":               "https://***@example.com/a",
		"https://u@example.com":                   "https://***@example.com",
		"https://u:p@q@example.com/a@b":           "https://***@example.com/***",
		"https://h/v1/hooks/T024BE7LD/Zq3cXw9Zq":  "https://h/v1/hooks/***/***",
		"https://example.com/a?key=k&k2=a=b&flag": "https://example.com/a?key=***&k2=***&***",
		"https://example.com/a?a=1;b=2":           "https://example.com/a?a=***&b=***",
		"https://example.com/a?":                  "https://example.com/a",
		"https://u:p@h/?to=https://x:y@z/?k=v#f":  "https://***@h/?to=***",
		"https://h/#k=v":                          "https://h/",
		"https://u:%zz@h/":                        "***",
		"u:p@h/?k=v":                              "***",
	} {
		if got := maskURL(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

func TestPasswordsOfDSNsAreMasked(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"sqlite:delaytask.db":              "sqlite:delaytask.db",
		"sqlite:/data/a:b@c.db":            "sqlite:/data/a:b@c.db",
		"root@tcp(localhost)/db":           "root@tcp(localhost)/db",
		"tcp(localhost:3306)/db":           "tcp(localhost:3306)/db",
		"u:p@tcp(h:3306)/db?charset=x":     "u:***@tcp(h:3306)/db?charset=x",
		"u:p@:/w:@tcp(h:3306)/db":          "u:***@tcp(h:3306)/db",
		"mysql://u:p@h:3306/db":            "mysql://u:***@h:3306/db",
		"mysql://u@h:3306/db":              "mysql://u@h:3306/db",
		"u:a://b@tcp(h)/db":                "u:***@tcp(h)/db",
		"u://b@tcp(h)/db":                  "u:***@tcp(h)/db",
		"u:p@tcp(h)/db?x=secret@elsewhere": "u:***@elsewhere",
		"u:p@h:3306/db":                    "u:***@h:3306/db", // no DSN, but the password is clear
		"":                                 "",
		// These are no DSNs.
		"root:p@ss": "***", "root:p": "***", "p": "***", "u:p@h/db": "***", "postgres://u:p@h/db": "***",
		"mysql://u:%zz@h/db": "***", "u/p@tcp(h)/": "***",
	} {
		if got := MaskDSN(dsn); got != want {
			t.Errorf("MaskDSN(%q) = %q, want %q", dsn, got, want)
		}
	}
}
