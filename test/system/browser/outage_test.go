package browser

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/stall"
)

// TestDatabaseThatGoesAndComesBack kills a server below an open page, lets it hang, and starts it again.
func TestDatabaseThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	server := dbtest.NewDisposable(t, dbtest.MariaDB)
	s := full(t, server.Database(t).DSN)
	var machine stall.Watch
	go machine.Sleep(t.Context())

	old := open(t, s.url)
	old.bad = []int{http.StatusServiceUnavailable}
	old.loud = true // htmx writes of failed requests to the console
	old.visit("tasks?status=failed&tag=mail.send", old.bad...)
	b := open(t, s.url)
	b.visit("") // what it has read is shown while the database is away
	away := func(how string, names ...string) {
		t.Helper()
		for _, look := range pages {
			if names != nil && !slices.Contains(names, look.name) || look.still ||
				look.name == "overview" { // that shows what it has read before, and says so once it is old
				continue
			}
			begin := time.Now()
			status := b.visit(s.path(look.path), http.StatusServiceUnavailable)
			took := time.Since(begin) - machine.Still(begin, time.Now())
			text := ask[string](b, "document.querySelector('main').innerText")
			if status != http.StatusServiceUnavailable || text == "" || took > 3*time.Second {
				t.Errorf("%s: %s: status %d after %v: %s", how, look.name, status, took, text)
			}
			if look.name == "task-failed" {
				b.look(how + "-" + look.name)
			}
		}
		old.until("!document.getElementById('away').hidden")
	}
	// The last reading is shown, and is called old once it is.
	kept := func(how string) {
		t.Helper()
		for name, path := range map[string]string{"overview": "", "tags": "tags"} {
			servertest.Eventually(t, "the page is called old: "+name, func() bool {
				begin := time.Now()
				status := b.visit(path, http.StatusServiceUnavailable)
				if took := time.Since(begin) - machine.Still(begin, time.Now()); took > 3*time.Second {
					t.Errorf("%s: %s: after %v", how, name, took)
				}
				return status == http.StatusServiceUnavailable
			})
			text := ask[string](b, "document.querySelector('main').innerText")
			if !strings.Contains(text, "mail.send") {
				t.Errorf("%s: %s shows nothing of what was read: %s", how, name, text)
			}
			b.look(how + "-" + name)
		}
	}
	server.Kill(t)
	away("killed")
	kept("killed")
	server.Start(t)
	old.until("document.getElementById('away').hidden")
	old.picture("back-tasks")
	for _, path := range []string{"", "tasks", "nodes"} {
		servertest.Eventually(t, path+" comes back", func() bool {
			return b.visit(path, http.StatusServiceUnavailable) == http.StatusOK
		})
	}
	server.Freeze(t)
	defer server.Thaw(t)
	away("hanging", "tasks", "task-failed")
	kept("hanging")
}
