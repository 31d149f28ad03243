package browser

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestDatabaseThatIsReadOnly looks at every page of a server that takes no writes, as after a failover, and tries every
// action: each is refused with a reason, and nothing is half done.
func TestDatabaseThatIsReadOnly(t *testing.T) {
	t.Parallel()
	d := dbtest.NewDisposable(t, dbtest.MariaDB).Database(t)
	root, err := sql.Open("mysql", d.DSN)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = root.Close() })
	cfg, err := mysql.ParseDSN(d.DSN)
	servertest.OK(t, err)
	execute := func(statement string) {
		t.Helper()
		_, err := root.ExecContext(t.Context(), statement)
		servertest.OK(t, err)
	}
	execute("CREATE USER 'plain'@'%' IDENTIFIED BY 'pw'") // root can write to a read-only server
	execute("GRANT ALL ON `" + cfg.DBName + "`.* TO 'plain'@'%'")
	cfg.User, cfg.Passwd = "plain", "pw"
	s := full(t, cfg.FormatDSN())
	rows := func() (all string) {
		t.Helper()
		for _, table := range []string{"delay_task_message", "delay_task_tag", "delay_task_schedule",
			"delay_task_worker", "delay_task_audit"} {
			var name, sum string
			servertest.OK(t, root.QueryRowContext(t.Context(), "CHECKSUM TABLE "+table).Scan(&name, &sum))
			all += table + " " + sum + "\n"
		}
		return all
	}
	execute("SET GLOBAL read_only = 1")
	before := rows()

	b := open(t, s.url)
	for _, look := range pages {
		if look.button == "" { // what is revealed is recorded
			b.shows(s, look)
		}
	}
	b.visit(s.path("tasks/{pending}"))
	b.until("document.querySelector('.why').innerText.includes('as one that is read-only does')")
	refused := func(name string) {
		t.Helper()
		b.until("document.querySelector('[role=alert]')")
		text := ask[string](b, "document.querySelector('[role=alert]').innerText")
		if !strings.Contains(text, "Nothing was done") {
			t.Errorf("%s: the answer is %s", name, text)
		}
	}
	for _, tt := range []struct{ page, verb string }{
		{"tasks/{pending}", "show"}, {"tasks/{pending}", "reschedule"}, {"tasks/{pending}", "cancel"},
		{"tasks/{failed}", "retry"}, {"tags/mail.send", "pause"}, {"tags/export", "resume"},
		{"schedules/nightly", "show"}, {"schedules/nightly", "run"}, {"schedules/nightly", "pause"},
		{"schedules/nightly", "skip"}, {"schedules/nightly", "reset"}, {"schedules/nightly", "delete"},
		{"schedules/nightly", "backfill"}, {"schedules/weekly", "resume"}, {"receivers/{receiver}", "delete"},
		{"bulk/{running}", "stop"},
	} {
		b.visit(s.path(tt.page), http.StatusServiceUnavailable)
		b.unfold(true)
		if tt.verb == "reschedule" {
			b.fill("#a-delay", "45m")
		}
		if tt.verb == "backfill" {
			b.fill("#a-from", "2026-01-01T00:00")
			b.fill("#a-to", "2026-01-03T00:00")
		}
		b.click("form[action$='/" + tt.verb + "'] button")
		refused(tt.page + " " + tt.verb)
	}
	b.look("read-only")
	b.visit("tasks?status=pending&tag=order.close", http.StatusServiceUnavailable)
	b.do(b.mouse("input[name=id]"))
	b.unfold(true)
	b.click("button[value=cancel]")
	refused("tasks")
	b.visit("bulk?verb=retry&status=failed&tag=mail.send", http.StatusServiceUnavailable)
	b.do(chromedp.SendKeys(chromedp.CSS("#typed"), "3"))
	b.click("main button.first")
	refused("a bulk change")
	if after := rows(); after != before {
		t.Errorf("the tables have changed:\n%s%s", before, after)
	}

	execute("SET GLOBAL read_only = 0")
	s.mended.Store(true)
	servertest.Eventually(t, "actions are taken again", func() bool {
		b.visit(s.path("tasks/{failed}"))
		b.unfold(true)
		b.click("form[action$='/retry'] button")
		return ask[bool](b, "location.search === '?did=retry'")
	})
	s.await(t, "failed", delaytask.Completed)
}
