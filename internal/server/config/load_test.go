package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

const example = "../../../config.yaml"

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	servertest.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	servertest.OK(t, err)
	return string(content)
}

func TestExampleFileHoldsEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	c, err := Load(Source{Path: example})
	servertest.OK(t, err)
	want := Default()
	want.DSNFrom = example + ": dsn"
	want.SchedulesRevision = c.SchedulesRevision // when the file was modified
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	content := readFile(t, example)
	for _, key := range Keys() {
		parts := strings.Split(key, ".")
		pattern := `(?m)^`
		for depth, part := range parts {
			if depth > 0 {
				pattern += `:\n(?:(?: .*)?\n)*?` + strings.Repeat("  ", depth)
			}
			pattern += part
		}
		pattern += `:`
		if !regexp.MustCompile(pattern).MatchString(content) {
			t.Errorf("%s does not name %s", example, key)
		}
	}
}

func TestExampleFileShowsTheSettingsOfATag(t *testing.T) {
	t.Parallel()
	uncommented := regexp.MustCompile(`(?m)^#(tags:|receivers:|schedules:|  )`).
		ReplaceAllString(readFile(t, example), "$1")
	c, err := Load(Source{Path: writeFile(t, uncommented)})
	servertest.OK(t, err)
	want := map[string]Tag{"order.close": {Concurrency: 8, Timeout: 30 * time.Second, TTR: time.Minute, MaxAttempts: 5}}
	if !reflect.DeepEqual(c.Tags, want) {
		t.Errorf("got %+v, want %+v", c.Tags, want)
	}
	s := c.Schedules["report.daily"]
	if len(c.Schedules) != 1 || s.Tag != "report.build" || s.Cron[0] != "30 2 * * *" ||
		s.Except[0] != "2027-12-24" || s.StartWithin != 6*time.Hour {
		t.Errorf("got %+v", c.Schedules)
	}
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "concurrency: 1\nmax_attempts: 1\nttr: 1m\n")
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags, "concurrency", "ttr", "migrate")
	servertest.OK(t, flags.Parse([]string{"--concurrency=3", "--migrate"}))
	c, err := Load(Source{
		Path:    path,
		Environ: []string{"DELAYTASK_CONCURRENCY=2", "DELAYTASK_MAX_ATTEMPTS=2", "DELAYTASK_DSN=", "RECEIVERS=9"},
		Flags:   flags,
	})
	servertest.OK(t, err)
	want := Default()
	want.Concurrency, want.MaxAttempts, want.TTR, want.Migrate = 3, 2, time.Minute, true
	info, err := os.Stat(path)
	servertest.OK(t, err)
	want.SchedulesRevision = info.ModTime().UTC().Truncate(time.Microsecond)
	want.Overridden = []string{"concurrency by DELAYTASK_CONCURRENCY", "max_attempts by DELAYTASK_MAX_ATTEMPTS"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestFlagsOfACommandAreNoSettings(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("save", pflag.ContinueOnError)
	flags.Duration("ttr", 0, "lease of this task")
	servertest.OK(t, flags.Parse([]string{"--ttr=1h"}))
	c, err := Load(Source{Path: writeFile(t, ""), Flags: flags})
	if err != nil || c.TTR != Default().TTR {
		t.Errorf("got TTR %v, %v", c.TTR, err)
	}
}

func TestEveryKeyIsAVariableAndAFlag(t *testing.T) {
	t.Parallel()
	other := Config{
		DSN: "u:p@tcp(h)/db", Migrate: true, Log: Log{Level: "warn", Format: "json"}, Concurrency: 2,
		TTR:     2 * time.Second,
		Timeout: 2 * time.Second, MaxAttempts: 2, Backoff: Backoff{Base: 2 * time.Second, Cap: 3 * time.Second,
			Jitter: 0.5},
		Lookahead: Lookahead{Every: 2 * time.Second}, BodyLimit: 2, ErrorLimit: 300,
		OnReplica: true, StartPaused: true, StopGrace: 2 * time.Second, Node: Node{Name: "n"},
		Quarantine: 7, Retention: Retention{Completed: day, Cancelled: 2 * day, Failed: 3 * day, Audit: 4 * day},
		SchedulesOwner: "shop", SchedulesRevision: time.Unix(1.7e9, 1000).UTC(),
		Secret: "0123456789abcdef", Wake: Wake{Listen: "off"},
		Server: Server{
			Listen: ":9", Hosts: []string{"a", "b"}, Auth: "token", Insecure: true, GetTopics: []string{"a", "b.*"},
			Metrics:        "open",
			Audit:          "operate",
			MaxConnections: 2,
			Dashboard:      "read", PublicURL: "https://tasks.example.com:8443",
			TrustedProxies: []string{"10.1.2.3/32", "10.2.0.0/16", "::1/128"},
			TLS:            TLS{Cert: "c", Key: "k", ClientCA: "a"},
			Redact:         "off", RedactNames: []string{"card_number", "iban"},
		},
		Push: Push{Allow: []string{"10.0.0.0/8", "c"}, Timeout: 2 * time.Second, HostConcurrency: 2, HostRate: 0.5},
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	var environ []string
	for _, s := range settings {
		set, _ := s.get(other)
		value := flagText(set)
		environ = append(environ, EnvName(s.name)+"="+value)
		if s.name == secretKey {
			continue
		}
		servertest.OK(t, flags.Set(FlagName(s.name), value))
	}
	for name, src := range map[string]Source{"DELAYTASK_DSN": {Environ: environ}, "--dsn": {Flags: flags}} {
		src.Path = writeFile(t, "")
		want := other
		want.DSNFrom = name
		if src.Flags != nil {
			want.Secret = ""
		}
		if c, err := Load(src); err != nil || !reflect.DeepEqual(c, want) {
			t.Errorf("%s gave %+v, %v", name, c, err)
		}
	}
}

func TestFileMayBeMissingUnlessItIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	if c, err := Load(Source{}); err != nil || !reflect.DeepEqual(c, Default()) {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	if _, err := Load(Source{Path: "config.yaml"}); err == nil {
		t.Error("the file that is named is not there")
	}
	t.Chdir(filepath.Dir(writeFile(t, "concurrency: 7")))
	if c, err := Load(Source{}); err != nil || c.Concurrency != 7 {
		t.Errorf("got concurrency %d, %v", c.Concurrency, err)
	}
	t.Chdir(filepath.Dir(writeFile(t, "spring: {}\n"))) // of another program
	if _, err := Load(Source{}); err == nil || !strings.Contains(err.Error(), "if it belongs to something else") {
		t.Errorf("got %v", err)
	}
}

func TestTagsFromFileAndEnvironment(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "tags:\n  a.b:\n    timeout: 0\n  mail/send: {concurrency: 2}\n  idle:\n")
	c, err := Load(Source{Path: path, Environ: []string{"DELAYTASK_TAGS_MAIL_SEND_TTR=20s"}})
	servertest.OK(t, err)
	want := map[string]Tag{"a.b": {NoTimeout: true}, "mail/send": {Concurrency: 2, TTR: 20 * time.Second}}
	if !reflect.DeepEqual(c.Tags, want) {
		t.Errorf("got %+v, want %+v", c.Tags, want)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, environ, want string }{
		{"unknown key", "concurency: 4", "", "concurency: unknown; did you mean concurrency?"},
		{"key without its section", "jitter: 1", "", "jitter: unknown; did you mean backoff.jitter?"},
		{"far from any key", "postgres: true", "", "postgres: unknown"},
		{"unknown key in a section", "log: {leve: info}", "", "log.leve: unknown; did you mean log.level?"},
		{"section as a value", "log: debug", "", "log: want the keys below it: log.level, log.format"},
		{"value as a section", "concurrency: {n: 4}", "", "concurrency.n: unknown; did you mean concurrency?"},
		{"dotted key", "log.level: debug", "", "has to be written nested"},
		{"wrong case", "Concurrency: 4", "", "Concurrency: unknown; did you mean concurrency?"},
		{"key twice", "concurrency: 4\nconcurrency: 5", "", "already defined"},
		{"a list", "- receivers", "", "read settings from"},
		{"text for a number", "concurrency: many", "", `concurrency: want a whole number from 1 to 100000, got "many"`},
		{"no mode of the dashboard", "server: {dashboard: write}", "", "dashboard: want one of on, read, off"},
		{"public address without TLS", "server: {public_url: 'http://a'}", "", "such as https://tasks.example.com"},
		{"public address without scheme", "server: {public_url: tasks.example.com}", "", "want the https address"},
		{"public address with a user", "server: {public_url: 'https://a:b@c'}", "", "want the https address"},
		{"public address with a query", "server: {public_url: 'https://a?b'}", "", "want the https address"},
		{"public address with a path", "server: {public_url: 'https://a/ui'}", "", "without a path"},
		{"public address with a space", "server: {public_url: 'https://a b'}", "", "want the https address"},
		{"public address with an encoded space", "server: {public_url: 'https://a%20b'}", "", "want the https address"},
		{"public address with a port", "server: {public_url: 'https://a:443443'}", "", "want the https address"},
		{"proxy by name", "server: {trusted_proxies: [proxy]}", "", "such as 10.1.2.3 or 10.1.0.0/16, got \"proxy\""},
		{"every proxy", "server: {trusted_proxies: ['0.0.0.0/0']}", "", "is every address"},
		{"number out of range", "concurrency: 0", "", "concurrency: want a whole number"},
		{"fraction for a number", "concurrency: 1.5", "", "concurrency: want a whole number"},
		{"duration without a unit", "ttr: 30", "",
			`ttr: want a duration such as 500ms, 30s, 5m, 1h30m or 7d, got "30"`},
		{"duration out of range", "ttr: 2d", "", "ttr: want a duration from 1s to 1d, got 2d"},
		{"negative duration", "timeout: -1s", "", "timeout: want a duration"},
		{"unknown level", "log: {level: loud}", "", "log.level: want one of debug, info, warn, error"},
		{"share over one", "backoff: {jitter: 20}", "", "backoff.jitter: want a number from 0 to 1"},
		{"not a number", "backoff: {jitter: .nan}", "", "backoff.jitter: want a number"},
		{"secret of the example", "secret: change-me-change-me", "", "secret (DELAYTASK_SECRET) is still the one of"},
		{"password of the example", "", "DELAYTASK_DSN=a:Change-Me@tcp(h)/shop", "the password in dsn"},
		{"signing secret of the example", "receivers: {t: {url: 'https://h', secrets: [change-me]}}", "",
			"one of receivers.t.secrets is still"},
		{"empty DSN", `dsn: ""`, "", "dsn: must not be empty"},
		{"not a boolean", "migrate: 1", "", "migrate: want true or false"},
		{"base over cap", "backoff: {base: 2h}", "", "backoff.base must not be longer than backoff.cap"},
		{"invalid tag", "tags: {order close: {ttr: 5s}}", "", "tags.order close.ttr: delaytask: invalid tag"},
		{"unknown setting of a tag", "tags: {mail: {tttr: 5s}}", "", "tags.mail.tttr: unknown; did you mean ttr?"},
		{"value for a tag", "tags: {mail: 5}", "", "tags.mail: want the settings of tags"},
		{"value for all tags", "tags: mail", "", "tags: want the settings of tags"},
		{"wrong setting of a tag", "tags: {mail: {concurrency: 0}}", "", "tags.mail.concurrency: want a whole number"},
		{"schedule without a tag", "schedules: {a: {every: 5m}}", "", "schedules.a.tag is missing"},
		{"schedule without ticks", "schedules: {a: {tag: t, except: 2027-12-24}}", "",
			"schedules.a: want cron, every or at"},
		{"value for a schedule", "schedules: {a: 5m}", "", "schedules.a: want the settings of a schedule"},
		{"value for all schedules", "schedules: daily", "", "schedules: want the names of schedules"},
		{"name of a schedule", "schedules: {a b: {tag: t}}", "", "schedules.a b.tag: delaytask: invalid name"},
		{"unknown setting of a schedule", "schedules: {a: {cro: x}}", "",
			"schedules.a.cro: unknown; did you mean cron?"},
		{"bad cron line", `schedules: {a: {tag: t, cron: ["@daily", "30 25 * * *"]}}`, "",
			"schedules.a.cron[1], column 4: hour: end of range (25)"},
		{"bad time", "schedules: {a: {tag: t, at: 2027-13-01T09:00}}", "", "schedules.a.at, column 1: "},
		{"bad interval", "schedules: {a: {tag: t, every: 500ms}}", "", "schedules.a.every, column 1: "},
		{"bad zone", `schedules: {a: {tag: t, every: 5m, zone: Nowhere}}`, "",
			"schedules.a: delaytask: invalid schedule: "},
		{"near zone", `schedules: {a: {tag: t, every: 5m, zone: Asia/Beijing}}`, "", "did you mean Asia/Shanghai?"},
		{"number for a line", "schedules: {a: {cron: 5}}", "", "schedules.a.cron: want a text or a list of texts"},
		{"bad policy", "schedules: {a: {overlap: queue}}", "", "schedules.a.overlap: want one of skip, queue_one"},
		{"contradiction", "schedules: {a: {tag: t, every: 5m, max_open: 3}}", "",
			"schedules.a: delaytask: invalid option"},
		{"bad tag of a schedule", "schedules: {a: {tag: a b, every: 5m}}", "", "schedules.a: delaytask: invalid tag"},
		{"bad owner", "schedules_owner: a b", "", "schedules_owner: want 1 to 128 of"},
		{"bad revision", "schedules_revision: now", "", "schedules_revision: want a time of RFC 3339"},
		{"wrong variable", "", "DELAYTASK_CONCURRENCY=x",
			`DELAYTASK_CONCURRENCY: want a whole number from 1 to 100000, got "x"`},
		{"misspelt variable", "", "DELAYTASK_LOGLEVEL=info",
			"DELAYTASK_LOGLEVEL: unknown; did you mean DELAYTASK_LOG_LEVEL?"},
		{"variable of a tag the file lacks", "", "DELAYTASK_TAGS_MAIL_TTR=5s", "name the tag in the file first"},
		{"variable of two tags", "tags: {a.b: {ttr: 5s}, a-b: {ttr: 5s}}", "DELAYTASK_TAGS_A_B_TTR=5s",
			"more than one tag"},
	} {
		_, err := Load(Source{Path: writeFile(t, tt.file), Environ: []string{tt.environ}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got  %v\nwant %s", tt.name, err, tt.want)
		}
	}
	_, err := Load(Source{Path: writeFile(t, "concurrency: 0\nttr: x\n"), Environ: []string{"DELAYTASK_BODY_LIMIT=x"}})
	for _, key := range []string{"concurrency", "ttr", "DELAYTASK_BODY_LIMIT"} {
		if err == nil || !strings.Contains(err.Error(), key+": want") {
			t.Errorf("%s is missing in: %v", key, err)
		}
	}
}

func TestForeignVariablesAreIgnored(t *testing.T) {
	t.Parallel()
	_, err := Load(Source{Path: writeFile(t, ""), Environ: []string{
		"DELAYTASK_TEST_DSN=x", "DELAYTASK_TEST_DOCKER=1", "DELAYTASK_REQUIRE_DB=mariadb", "DELAYTASK_CONFIG=a.yaml",
		"DELAYTASK_URL=http://127.0.0.1:8080", "DELAYTASK_TOKEN=secret",
		"DELAYTASK_BOOTSTRAP_TOKEN=secret", "DELAYTASK_BOOTSTRAP_TOKEN_FILE=/run/token",
		"DELAYTASK_SERVICE_HOST=10.0.0.1", "DELAYTASK_SERVICE_PORT_HTTP=80", "DELAYTASK_PORT=tcp://10.0.0.1:80",
		"DELAYTASK_PORT_80_TCP_ADDR=10.0.0.1", "DELAYTASK_MYSQL_SERVICE_HOST=10.0.0.2",
		"DELAYTASK_MYSQL_PORT=tcp://10.0.0.2:3306",
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestSecretsInAFileThatOthersCanReadAreReported(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	const secrets = `{dsn: "u:p@tcp(h)/db", secret: 0123456789abcdef, receivers: {
		t: {url: "https://u:p@h", secrets: [s]}, u: {url: "https://h"}}}`
	for _, c := range []struct {
		mode    os.FileMode
		content string
		want    string
	}{
		{0o644, secrets, "dsn secret receivers.t.secrets receivers.t.url"}, {0o640, secrets, ""}, {0o600, secrets, ""},
		{0o644, `{dsn: "u@tcp(h)/db", ttr: 1m}`, ""},
	} {
		path := writeFile(t, c.content)
		servertest.OK(t, os.Chmod(path, c.mode))
		got, err := Load(Source{Path: path, Environ: []string{"DELAYTASK_SECRET=fedcba9876543210"}})
		exposed := strings.ReplaceAll(strings.Join(got.Exposed, " "), path+": ", "")
		if err != nil || exposed != c.want {
			t.Errorf("%v %s: %q, %v, want %q", c.mode, c.content, exposed, err, c.want)
		}
	}
}

func TestSettingsOfTheFileThatAreOverriddenAreReported(t *testing.T) {
	t.Parallel()
	path := writeFile(t, `{dsn: "sqlite:a.db", ttr: 1m, log: {level: debug}, server: {listen: ":1"},
		tags: {t: {ttr: 2m}}}`)
	got, err := Load(Source{Path: path, Environ: []string{
		"DELAYTASK_DSN=sqlite:b.db", "DELAYTASK_LOG_LEVEL=debug", "DELAYTASK_SERVER_LISTEN=:2", "DELAYTASK_TIMEOUT=1m",
		"DELAYTASK_TAGS_T_TTR=3m",
	}})
	servertest.OK(t, err)
	want := []string{
		"dsn by DELAYTASK_DSN", "server.listen by DELAYTASK_SERVER_LISTEN", "tags.t.ttr by DELAYTASK_TAGS_T_TTR",
	}
	if !slices.Equal(got.Overridden, want) {
		t.Errorf("got %q, want %q", got.Overridden, want)
	}
}

func TestNearestFindsWhatWasMeant(t *testing.T) {
	t.Parallel()
	f := func(word, want string) {
		t.Helper()
		if got, _ := nearest(Keys(), word); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
	f("retention.canceled", "retention.cancelled")
	f("node.nam", "node.name")
	f("lookahead.evry", "lookahead.every")
	f("jitter", "backoff.jitter")
	f("bodylimit", "body_limit")
	f("x", "")
	f("", "")
}
