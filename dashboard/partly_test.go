package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// A database that is away, or that hangs, leaves what was read last on the pages that share it, within 3 s.
func TestWhatWasReadLastIsShownWhileTheDatabaseIsAway(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.Hang} {
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Value
			now.Store(faultstore.Pass)
			s := inMemory(t, faultstore.New(memstore.New(memstore.WithClock(time.Now)),
				func(faultstore.Call) faultstore.Mode { return now.Load().(faultstore.Mode) }))
			cancel := fmt.Sprintf("/tasks/%d/cancel", s.save("order.close"))
			s.get("/").has(t, http.StatusOK, "order.close", "Nothing needs attention")
			now.Store(mode)
			for range 3 {
				time.Sleep(6 * time.Second)
				for _, page := range []string{"/", "/tags"} {
					began := time.Now()
					a := s.get(page)
					a.has(t, http.StatusServiceUnavailable, "order.close", "This was read")
					if took := time.Since(began); took > 3*time.Second {
						t.Errorf("%v, %s: the page comes after %v", mode, page, took)
					}
					if strings.Contains(a.body, "Nothing needs attention") {
						t.Errorf("%v, %s: it says that all is well", mode, page)
					}
				}
			}
			began := time.Now()
			s.post(cancel, nil).has(t, http.StatusServiceUnavailable)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("%v: a change is answered after %v", mode, took)
			}
			now.Store(faultstore.Pass)
		})
	}
}

// A part that could not be read is no zero.
func TestANumberThatWasNotReadIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, faultstore.New(memstore.New(memstore.WithClock(time.Now)),
			faultstore.Method("Count", 0, faultstore.Before)))
		s.save("order.close")
		servertest.OK(t, s.Pause(t.Context(), "order.close"))
		a := s.get("/")
		a.has(t, http.StatusOK, "order.close", "<dd>–</dd>", `<span class="quiet">–</span>`)
		if strings.Contains(a.body, "Nothing needs attention") {
			t.Error("it says that all is well")
		}
		s.get("/tags").has(t, http.StatusOK, `<span class="quiet">–</span>`)
		s.get("/tags/order.close").has(t, http.StatusOK, `<span class="quiet">–</span>`)
		if a := s.get("/tasks?status=pending&tag=order.close"); strings.Contains(a.body, `class="count"`) {
			t.Error("it counts a list that cannot be counted")
		} else {
			a.has(t, http.StatusOK, `class="row" href="tasks/`)
		}
	})
}

// The tags that a field offers are a help alone.
func TestAPageDoesWithoutTheTagsThatItOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, faultstore.New(memstore.New(memstore.WithClock(time.Now)),
			faultstore.Method("Tags", 0, faultstore.Before)))
		s.save("order.close")
		for _, page := range []string{"/tasks?status=pending&tag=order.close", "/load?tag=order.close", "/failures"} {
			s.get(page).has(t, http.StatusOK)
		}
	})
}

// A page that is old offers no change that would fail.
func TestTagsThatAreOldOfferNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := inMemory(t, faultstore.New(memstore.New(memstore.WithClock(time.Now)),
			func(faultstore.Call) faultstore.Mode {
				if away.Load() {
					return faultstore.Before
				}
				return faultstore.Pass
			}))
		s.save("order.close")
		s.get("/tags").has(t, http.StatusOK, "tags/order.close/pause")
		away.Store(true)
		time.Sleep(6 * time.Second)
		a := s.get("/tags")
		a.has(t, http.StatusServiceUnavailable, "order.close")
		if strings.Contains(a.body, "order.close/pause") {
			t.Error("it offers a change")
		}
		away.Store(false)
	})
}

// Where the database refuses one of the selected tasks, the page says what became of the others.
func TestASelectionThatEndsEarlySaysHowFarItCame(t *testing.T) {
	t.Parallel()
	s := open(t)
	form := url.Values{"verb": {"cancel"}, "back": {"tasks?tag=a"}}
	for range 4 {
		form.Add("id", strconv.FormatInt(s.save("a"), 10))
	}
	servertest.Exec(t, s.dsn, "CREATE TRIGGER full BEFORE INSERT ON delay_task_audit WHEN NEW.target = '"+form["id"][2]+
		"' BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
	a := s.post("/tasks", form)
	a.has(t, http.StatusSeeOther)
	to := strings.TrimPrefix(a.header.Get("Location"), ".")
	if want := "/tasks?done=2&left=0&tag=a&untried=2"; to != want {
		t.Fatalf("it leads to %s, want %s", to, want)
	}
	s.get(to).has(t, http.StatusOK, "2 tasks were changed", "2 tasks were not changed")
	form["id"] = form["id"][2:]
	s.post("/tasks", form).has(t, http.StatusServiceUnavailable, "Nothing was done", `href="./tasks"`)
	s.post("/tasks/"+form["id"][0]+"/cancel", nil).has(t, http.StatusServiceUnavailable,
		`href="./../../tasks/`+form["id"][0]+`"`)
}

// A filter would leave out the part of an address that cannot be read.
func TestAnAddressThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.save("mail")
	for _, path := range []string{"/tasks?tag=mail%zz", "/bulk?verb=cancel&status=pending;tag=mail", "/find?q=%f"} {
		s.get(path).has(t, http.StatusBadRequest, "A part of the address cannot be read")
	}
}

// The name of a header masks the whole value, whatever stands in it.
func TestHeadersOfSecretsAreHidden(t *testing.T) {
	t.Parallel()
	for _, o := range []dashboard.Options{{}, {Redact: func(string, string) string { return "(not shown)" }}} {
		s := open(t, func(of *dashboard.Options) { of.Redact = o.Redact })
		id := s.save("a", delaytask.WithHeaders(map[string]string{
			"Cookie": `session="canary"`, "Authorization": `Digest username="u", response="canary"`,
			"X-Auth-Token": "Custom canary", "X-Password": "it's a canary", "X-Webhook-Secret": "no canary",
			"Api-Key": "first line\ncanary", "X-Kept": "<b> & co",
		}))
		a := s.get(fmt.Sprintf("/tasks/%d", id))
		a.has(t, http.StatusOK, "X-Webhook-Secret")
		if strings.Contains(a.body, "canary") {
			t.Errorf("it shows a secret: %s", a.body)
		}
		if o.Redact == nil {
			a.has(t, http.StatusOK, "&lt;b&gt; &amp; co")
		} else {
			a.has(t, http.StatusOK, "(not shown)")
		}
	}
}

// Where a page cuts a text, neither what stands before the cut nor what follows it tells of a secret.
func TestNoSecretSlipsThroughACut(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("a")
	for before := 3900; before < 4200; before += 20 {
		body := `{"a":"` + strings.Repeat("x", before) + `","password":"canary canary","dsn":"u:canary@tcp(h)/"}`
		failure := strings.Repeat("x", before-3890) + " u:canary" + strings.Repeat("canary", 100) + "@tcp(h)/ secret"
		servertest.Exec(t, s.dsn, `UPDATE delay_task_message SET status = 2, message_body = '`+body+
			`', error_stack = '`+failure+`'`)
		for _, a := range []answer{
			s.get("/tasks?status=failed"), s.get("/failures"), s.post(fmt.Sprintf("/tasks/%d/show", id), nil),
		} {
			if a.has(t, http.StatusOK, "xxx"); strings.Contains(a.body, "canary") {
				t.Fatalf("after %d bytes it shows %s", before, a.body)
			}
		}
	}
}

// A page masks what it shows, however long the texts are.
func TestAPageMasksWhatItShows(t *testing.T) {
	t.Parallel()
	var masked atomic.Int64
	s := open(t, func(o *dashboard.Options) {
		o.Redact = func(_, text string) string {
			masked.Add(int64(len(text)))
			return text
		}
		o.RedactBeginning = func(_, text string, bytes int) string {
			masked.Add(int64(bytes))
			return text[:min(bytes, len(text))]
		}
	})
	for range 30 {
		s.save("a")
	}
	servertest.Exec(t, s.dsn, `UPDATE delay_task_message SET status = 2, message_body = '`+strings.Repeat("x", 1<<20)+
		`', error_stack = '`+strings.Repeat("x", 1<<20)+`'`)
	for _, path := range []string{"/tasks?status=failed", "/failures", "/"} {
		servertest.Eventually(t, path+" is shown", func() bool { // a busy machine may not read 60 MiB in time
			masked.Store(0)
			return s.get(path).status == http.StatusOK
		})
		if masked.Load() > 30<<10 {
			t.Errorf("%s masks %d bytes", path, masked.Load())
		}
	}
	masked.Store(0)
	if s.post("/tasks/1/show", nil); masked.Load() > 8<<10 {
		t.Errorf("the beginning of a body masks %d bytes", masked.Load())
	}
}

// A body with a mask would replace the secret by it.
func TestAMaskIsNoBody(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	s := openOn(t, d)
	id := s.save("a")
	path := fmt.Sprintf("/tasks/%d/", id)
	s.post(path+"show", nil).has(t, http.StatusOK, "The audit log records that it was shown", "number-4711")
	task, err := s.Get(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	form := url.Values{"version": {strconv.FormatInt(task.Version, 10)}, "body": {"{\"key\":\"[delaytask-redacted]\"}"}}
	s.post(path+"body", form).has(t, http.StatusBadRequest)
	if task, err = s.Get(t.Context(), delaytask.ID(id)); err != nil || !strings.Contains(string(task.Body), "4711") {
		t.Errorf("the body is %s, %v", task.Body, err)
	}
	s = openOn(t, d, func(o *dashboard.Options) { o.NoAudit = true })
	a := s.post(path+"show", nil)
	if a.has(t, http.StatusOK, "number-4711"); strings.Contains(a.body, "The audit log records that it was shown") {
		t.Error("it says that there is an entry")
	}
}

// A user who may see few of many schedules gets these, and no name of another one.
func TestNoLinkNamesAForeignSchedule(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	for i := range 120 {
		s.schedule(fmt.Sprintf("foreign-%03d", i), "b")
	}
	s.schedule("own", "a")
	s.user = dashboard.User{Name: "eve", Role: dashboard.Viewer, Tags: []string{"a"}}
	a := s.get("/schedules")
	a.has(t, http.StatusOK, "schedules/own")
	if strings.Contains(a.body, "foreign") || strings.Contains(a.body, "after=") {
		t.Error("it names a schedule of another tag")
	}
}

func TestAKeyWithSpacesIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	for q, want := range map[string]string{
		"order.close no 4711": "./tasks?key=no+4711&tag=order.close", " order.close ": "./tasks?tag=order.close",
		"12": "./tasks/12", "order.close  4711": "./tasks?key=4711&tag=order.close",
	} {
		a := s.get("/find?q=" + url.QueryEscape(q))
		a.has(t, http.StatusSeeOther)
		if to := a.header.Get("Location"); to != want {
			t.Errorf("%q leads to %s, want %s", q, to, want)
		}
	}
	s.get("/find?q=+").has(t, http.StatusBadRequest)
}
