package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestSavePrintsTheIDOfACommittedTask(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("order.close", `{"order":42}`, "--delay", "30m", "--key", "order-42", "--ttr", "20s", "--max-attempts",
		"3", "--priority", "5", "--header", "trace=a=b", "--header", "user=7", "--max-lateness", "10m:skip")
	if n, err := parseID(id); err != nil || n>>12&1023 < 512 {
		t.Fatalf("printed %q, whose node number a node can lease", id)
	}
	var v taskView
	s.decode(&v, "get", id)
	if v.ID.String() != id || v.Tag != "order.close" || v.Key != "order-42" || *v.Body != `{"order":42}` ||
		v.Status != "pending" || v.DelayMS != 1_800_000 || v.TTRMS != 20_000 || v.MaxAttempts != 3 || v.Priority != 5 ||
		v.MaxLateMS != 600_000 || v.LatePolicy != "skip" || v.Headers["trace"] != "a=b" ||
		v.Headers["user"] != "7" {
		t.Errorf("stored %+v", v)
	}
	if time.Until(time.Time(v.Due)) > 30*time.Minute || v.Due != v.Expected {
		t.Errorf("due %v, expected %v", v.Due, v.Expected)
	}
}

func TestAKeyIsOfOneApp(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	shop := s.save("t", "1", "--key", "k", "--app", "shop", "--delay", "1h")
	mall := s.save("t", "2", "--key", "k", "--app", "mall", "--delay", "1h")
	if r := s.run("save", "t", "3", "--key", "k", "--app", "mall"); r.code != exitFailed {
		t.Errorf("a key that is taken: code %d, %s", r.code, r.stdout)
	}
	contains(t, s.ok("get", "--tag", "t", "--key", "k", "--app", "shop"), shop, "shop")
	contains(t, s.ok("list", "--tag", "t", "--key", "k", "--app", "shop"), shop)
	contains(t, s.ok("explain", "--tag", "t", "--key", "k", "--app", "mall"), "It is due at")
	s.ok("reschedule", "--tag", "t", "--key", "k", "--app", "mall", "--delay", "2h")
	s.ok("cancel", "--tag", "t", "--key", "k", "--app", "shop")
	for _, app := range []string{"shop", ""} {
		if r := s.run("get", "--tag", "t", "--key", "k", "--app", app); r.code != exitFailed {
			t.Errorf("get in the app %q: code %d, %s", app, r.code, r.stdout)
		}
	}
	var v taskView
	if s.decode(&v, "get", mall); v.ID.String() != mall || v.App != "mall" || v.Key != "k" || v.Status != "pending" {
		t.Errorf("the other application's task: %+v", v)
	}
}

func TestSaveReschedulesTheTaskThatCarriesItsKey(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	save := func(body, delay, mode string) result {
		return s.run("save", "t", body, "--key", "k", "--delay", delay, "--on-conflict", mode, "--max-wait", "5m",
			"--json")
	}
	var first, again savedView
	for v, r := range map[*savedView]result{&first: save("1", "10s", "replace-time-and-body"),
		&again: save("2", "1h", "replace-time-and-body")} {
		if err := json.Unmarshal([]byte(r.stdout), v); err != nil || r.code != 0 {
			t.Fatalf("code %d, %s%s", r.code, r.stdout, r.stderr)
		}
	}
	if again.ID != first.ID || first.Rescheduled || !again.Rescheduled {
		t.Errorf("saved %+v, then %+v", first, again)
	}
	var v taskView
	if s.decode(&v, "get", fmt.Sprint(first.ID)); *v.Body != "2" || v.DelayMS > 300_000 || v.DelayMS < 200_000 {
		t.Errorf("the task is %+v", v)
	}
	var own savedView
	if s.decode(&own, "save", "t", "4", "--key", "k", "--delay", "1m", "--on-conflict", "replace-time-and-body", "--id",
		fmt.Sprint(first.ID)); !own.Rescheduled {
		t.Errorf("saved again under its id: %+v", own)
	}
	if r := save("3", "1s", "only-later"); r.code != exitFailed || !strings.Contains(r.stdout, `"duplicate": true`) {
		t.Errorf("a mode that keeps the task: code %d, %s", r.code, r.stdout)
	}
}

func TestSaveTakesItsBodyFromAFileOrStandardInput(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.stdin = "from stdin\n"
	file := filepath.Join(t.TempDir(), "body.json")
	servertest.OK(t, os.WriteFile(file, []byte("from a file"), 0o600))
	for argument, want := range map[string]string{"-": s.stdin, "@" + file: "from a file", "": "", "-7": "-7"} {
		var v taskView
		s.decode(&v, "get", s.save("--", "tag", argument))
		if *v.Body != want {
			t.Errorf("%q stored %q", argument, *v.Body)
		}
	}
}

func TestASecondSaveStoresNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var saved struct {
		ID, Tag, Key string
		Duplicate    bool
	}
	if s.decode(&saved, "save", "tag", "x", "--key", "k"); saved.Tag != "tag" || saved.Key != "k" || saved.Duplicate {
		t.Errorf("saved %+v", saved)
	}
	id := saved.ID
	if again := s.save("tag", "x", "--key", "k", "--id", id); again != id {
		t.Errorf("saved as %s", again)
	}
	if r := s.run("save", "tag", "another body", "--id", id); r.code != exitFailed {
		t.Errorf("another body under the same id: code %d", r.code)
	}
	r := s.run("save", "tag", "y", "--key", "k", "--json")
	err := json.Unmarshal([]byte(r.stdout), &saved)
	if err != nil || r.code != exitFailed || saved.ID != id || !saved.Duplicate {
		t.Errorf("code %d, %v in\n%s", r.code, err, r.stdout)
	}
	contains(t, r.stderr, "task "+id, "choose another key")
	if out := s.ok("save", "tag", "y", "--key", "other", "--json"); strings.Contains(out, "duplicate") {
		t.Errorf("no duplicate printed\n%s", out)
	}
}

func TestGetShowsTheErrorsOfTheAttempts(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.serve("print", 1, errOnFire)[0]
	contains(t, s.ok("get", id), "failed", "1 of 20", "unsuccessful attempts", "the printer is on fire", `{"n":1}`,
		" late") // and why, on a slow machine
	var v taskView
	s.decode(&v, "get", id)
	if len(v.FailedAttempts) != 1 || v.FailedAttempts[0].Error != "the printer is on fire" || v.LatenessMS == nil ||
		time.Time(v.Finished).IsZero() {
		t.Errorf("got %+v", v)
	}
}

func TestNoOutputSendsControlCharactersToTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31m\a\r\x7f\u009b2J\u202e\U000e0041\u200b\u2028é"
	const shown = `\x1b[31m\x07\x0d\u007f\u009b2J\u202e\udb40\udc41\u200b\u2028é`
	s := newShell(t)
	id := s.save("tag", evil+"\nsecond line", "--header", "h="+evil, "--delay", "1h", "--key", "k\ttab")
	attempts, err := json.Marshal([]map[string]any{{"n": 1, "finished": time.Now(), "executor": evil,
		"error": evil + "\nforged"}})
	servertest.OK(t, err)
	s.exec("INSERT INTO delay_task_process (id, name, seen_time) VALUES (9, ?, ?)", evil, "2026-03-01 12:00:00.000000")
	s.exec("UPDATE delay_task_message SET process = 9, claim = 1, error_stack = ?, errors = ?, attempt = 1",
		evil+"\nforged\xff", attempts)
	other := s.save("tag2", "1", "--key", "k", "--delay", "1h")
	s.exec("UPDATE delay_task_message SET tag = ?, task_key = ? WHERE id = ?", evil, evil+"\nforged", other)
	s.exec(`INSERT INTO delay_task_node (number, token, name, address, tags, version, heartbeat)
		VALUES (7, 't', ?, ?, '[]', ?, strftime('%Y-%m-%d %H:%M:%f000', 'now'))`, evil, evil, evil)
	for _, command := range [][]string{{"get", id}, {"get", other}, {"list"}, {"explain", id}, {"explain", other},
		{"stats"}, {"forecast", "--span", "24h"},
		{"nodes"}, {"overview"}} {
		out := s.ok(command...)
		if i := strings.IndexFunc(out, unseen); i >= 0 || !utf8.ValidString(out) || strings.Contains(out, "\nforged") {
			t.Errorf("%v printed %q", command, out)
		}
		if !strings.Contains(out, shown) {
			t.Errorf("%v: %q is missing in\n%s", command, shown, out)
		}
		if out := s.ok(append(command, "--json")...); strings.IndexFunc(out, unseen) >= 0 {
			t.Errorf("%v --json printed %q", command, out)
		}
	}
	contains(t, s.ok("get", id), "\n  second line", `\xff`)
	var v struct {
		Body    string
		Headers map[string]string
	}
	if err := json.Unmarshal([]byte(s.ok("get", id, "--json")), &v); err != nil || v.Body != evil+"\nsecond line" ||
		v.Headers["h"] != evil {
		t.Errorf("JSON holds %+q, %v", v, err)
	}
	for _, args := range [][]string{{"get", evil}, {"pause", evil}, {"get", "--tag", "tag", "--key", evil}} {
		if out := s.run(args...).stderr; out == "" || strings.IndexFunc(out, unseen) >= 0 {
			t.Errorf("%q says %q", args, out)
		}
	}
}

func TestListFiltersAndTurnsPages(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first, second := s.save("a", "1", "--delay", "1h"), s.save("a", "2", "--delay", "1h", "--key", "k")
	s.save("b", "3")

	var tasks []taskView
	ids := func(args ...string) (ids []string, next string) {
		next = s.items(&tasks, append([]string{"list"}, args...)...)
		for _, task := range tasks {
			ids = append(ids, task.ID.String())
		}
		return ids, next
	}
	f := func(want string, args ...string) {
		t.Helper()
		if got, _ := ids(args...); strings.Join(got, " ") != want {
			t.Errorf("list %v gave %v, want %s", args, got, want)
		}
	}
	f(second+" "+first, "--tag", "a")
	f(second, "--tag", "a", "--key", "k")
	f(first+" "+second, "--tag", "a", "--status", "pending")
	f("", "--tag", "a", "--status", "failed")
	f("", "--tag", "a", "--older", "1s")
	f(first+" "+second, "--tag", "a", "--order", "due")
	f(second, "--tag", "a", "--limit", "1")
	_, next := ids("--tag", "a", "--limit", "1")
	f(first, "--tag", "a", "--after", next)
	r := s.run("list", "--limit", "1", "--tag", "a")
	contains(t, r.stdout, "ID", "TAG", "EXPECTED", second)
	contains(t, r.stderr, "--after "+next)
	contains(t, s.ok("list", "--tag", "c"), "No task matches")
	if s.items(&tasks, "list", "--tag", "a", "--bodies"); *tasks[0].Body != "2" {
		t.Errorf("with bodies: %+v", tasks)
	}
}

func TestListGoesOnBeyondAPageOfTheLibrary(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	s.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1500)
		INSERT INTO delay_task_message (id, tag, message_body, delay_time) SELECT i, 't', 'b', 0 FROM n`)
	for _, want := range []struct {
		count int
		more  bool
		args  []string
	}{
		{1500, false, []string{"--limit", "5000"}},
		{1200, true, []string{"--limit", "1200"}},
		{1500, false, []string{"--limit", "1500"}},
		{250, true, []string{"--limit", "250", "--bodies"}},
	} {
		var tasks []taskView
		next := s.items(&tasks, append([]string{"list"}, want.args...)...)
		if len(tasks) != want.count || int(tasks[want.count-1].ID) != 1501-want.count || (next != "") != want.more {
			t.Errorf("%v: %d tasks, next %q", want.args, len(tasks), next)
		}
	}
}

func TestRescheduleMovesThePromise(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("tag", "x", "--delay", "1h", "--key", "k")
	contains(t, s.ok("reschedule", id, "--delay", "2h"), id, "now due at")
	var v taskView
	s.decode(&v, "reschedule", "--tag", "tag", "--key", "k", "--at", "2199-01-31T10:30:00.250+02:00")
	if v.Expected.String() != "2199-01-31T08:30:00.250Z" || v.Due != v.Expected {
		t.Errorf("moved to %s, due %s", v.Expected, v.Due)
	}
}

func TestSaveTakesTheNearestSetting(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "settings.yaml")
	settings := "ttr: 20s\nmax_attempts: 9\ntags:\n  own: {ttr: 40s, max_attempts: 4}\n"
	servertest.OK(t, os.WriteFile(file, []byte(settings), 0o600))
	f := func(ttr, maxAttempts int64, args ...string) {
		t.Helper()
		var v taskView
		s.decode(&v, "get", s.save(append(args, "--config", file)...))
		if v.TTRMS != ttr || int64(v.MaxAttempts) != maxAttempts {
			t.Errorf("save %v: TTR %d ms, %d attempts; want %d, %d", args, v.TTRMS, v.MaxAttempts, ttr, maxAttempts)
		}
	}
	f(20_000, 9, "plain")
	f(40_000, 4, "own")
	f(50_000, 4, "own", "--ttr", "50s")
	f(40_000, 5, "own", "--max-attempts", "5")
}

func TestAListOfFailedTasksSaysWhenAndWhyTheyFailed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.serve("print", 1, errOnFire)[0]
	var failed taskView
	s.decode(&failed, "get", id)
	for _, filter := range []string{"--status failed", "--status failed --tag print"} {
		contains(t, s.ok(append([]string{"list"}, strings.Fields(filter)...)...), "FINISHED", "ERROR", id,
			moment(failed.Finished.Std()), "the printer is on fire\n")
	}
	s.exec(`UPDATE delay_task_message SET errors =
		'[{"n":1,"executor":"e","error":"401: token=hunter2hunter2\nstack"}]'`)
	r := s.run("list", "--status", "failed")
	contains(t, r.stdout, "401: token="+redact.Mask+"\n")
	contains(t, r.stderr, "--raw")
	contains(t, s.ok("list", "--status", "failed", "--raw"), "401: token=hunter2hunter2\n")
	if all := s.ok("list"); strings.Contains(all, "ERROR") {
		t.Errorf("a list of all tasks:\n%s", all)
	}
}
