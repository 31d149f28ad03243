package browser

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

type look struct {
	name, path string
	button     string // that leads from there to the page
	keys       string // that are pressed there
	status     int    // of the answer, 200 by default
	still      bool   // the page reads no database
}

// pages lists every page.
var pages = []look{
	{name: "overview", path: ""},
	{name: "tasks", path: "tasks"},
	{name: "tasks-pending", path: "tasks?status=pending&tag=order.close"},
	{name: "tasks-failed", path: "tasks?status=failed&tag=mail.send&order=-due"},
	{name: "tasks-invalid", path: "tasks?late_by=soon", status: http.StatusBadRequest, still: true},
	{name: "task-pending", path: "tasks/{pending}"},
	{name: "task-executing", path: "tasks/{executing}"},
	{name: "task-completed", path: "tasks/{completed}"},
	{name: "task-failed", path: "tasks/{failed}"},
	{name: "task-cancelled", path: "tasks/{cancelled}"},
	{name: "task-gone", path: "tasks/17", status: http.StatusNotFound},
	{name: "body", path: "tasks/{pending}", button: "form[action$='/show'] button"},
	{name: "tags", path: "tags"},
	{name: "tag", path: "tags/mail.send"},
	{name: "tag-paused", path: "tags/export"},
	{name: "load", path: "load"},
	{name: "failures", path: "failures"},
	{name: "failures-of-tag", path: "failures?tag=mail.send"},
	{name: "nodes", path: "nodes"},
	{name: "node", path: "nodes/{node}"},
	{name: "receivers", path: "receivers"},
	{name: "receiver", path: "receivers/{receiver}"},
	{name: "schedules", path: "schedules"},
	{name: "schedule", path: "schedules/nightly"},
	{name: "bulk", path: "bulk?verb=retry&status=failed&tag=mail.send"},
	{name: "audit", path: "audit"},
}

// states lists what pages also show: what has been done, what is not there, and what lasts a moment.
var states = []look{
	{name: "tasks-narrowed", path: "tasks?status=failed&tag=mail.send&error=no+such+error&late_by=1s"},
	{name: "tasks-done", path: "tasks?status=pending&tag=order.close&done=2&left=1"},
	{name: "tasks-held", path: "tasks?status=pending&tag=order.close", keys: "p"},
	{name: "task-did", path: "tasks/{cancelled}?did=cancel"},
	{name: "body-long", path: "tasks/{long}", button: "form[action$='/show'] button"},
	{name: "body-fixed", path: "tasks/{completed}", button: "form[action$='/show'] button"},
	{name: "tag-did", path: "tags/export?did=pause"},
	{name: "tag-unknown", path: "tags/no.such.tag"},
	{name: "failures-none", path: "failures?tag=export"},
	{name: "receivers-removed", path: "receivers?app=none&removed=1"},
	{name: "receiver-expired", path: "receivers/{expired}"},
	{name: "receiver-gone", path: "receivers/1700", status: http.StatusNotFound},
	{name: "node-gone", path: "nodes/1700", status: http.StatusNotFound},
	{name: "schedules-deleted", path: "schedules?prefix=none&deleted=1"},
	{name: "schedule-paused", path: "schedules/weekly"},
	{name: "schedule-did", path: "schedules/hourly?did=run"},
	{name: "schedule-explained", path: "schedules/nightly?tick=2026-01-02T02:30:00"},
	{name: "schedule-gone", path: "schedules/none", status: http.StatusNotFound},
	{name: "schedule-body", path: "schedules/nightly", button: "form[action$='/show'] button"},
	{name: "bulk-cancel", path: "bulk?verb=cancel&status=pending&tag=order.close"},
	{name: "bulk-none", path: "bulk?verb=cancel&status=pending&tag=report/daily"},
	{name: "run", path: "bulk/{running}"},
	{name: "run-done", path: "bulk/{done}"},
	{name: "run-stopped", path: "bulk/{stopped}"},
	{name: "run-failed", path: "bulk/{broken}"},
	{name: "run-unknown", path: "bulk/none", status: http.StatusNotFound},
	{name: "run-untold", path: "bulk/{untold}"},
	{name: "runs", path: "changes"},
	{name: "audit-none", path: "audit?who=nobody"},
	{name: "nowhere", path: "no/such/page", status: http.StatusNotFound},
}

var themes = []string{"light", "dark"}

// sizes are a desk, a phone, and the desk at a zoom of 200 %.
var sizes = []struct {
	name          string
	width, height int64
	scale         float64
}{{"1280", 1280, 900, 1}, {"375", 375, 812, 1}, {"zoomed", 640, 450, 2}}

// TestEveryPageLooksRight shows every page in both themes and all sizes: full, empty, and to people who may not do
// everything. The tab fails the test for what a page does beyond being shown, axe-core for what keeps people out.
func TestEveryPageLooksRight(t *testing.T) {
	t.Parallel()
	s, empty := full(t, ""), serve(t, "", scheduler.Config{})
	ofNothing := slices.DeleteFunc(slices.Clone(pages), func(l look) bool { return strings.Contains(l.path, "/") })
	for name, looks := range map[string][]look{"pages": pages, "states": states} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open(t, s.url).looks(t, s, looks, "full-")
		})
	}
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		open(t, empty.url).looks(t, empty, ofNothing, "empty-")
	})
	t.Run("of others", func(t *testing.T) {
		t.Parallel()
		for _, other := range others {
			seen := s.as(t, other.options)
			open(t, seen.url).looks(t, seen, other.looks, other.name+"-")
		}
	})
}

// others are people who do not see or may not do everything, and what they are shown.
var others = []struct {
	name    string
	options dashboard.Options
	looks   []look
}{
	{"viewer", dashboard.Options{Who: is("guest", dashboard.Viewer, "mail.*")}, []look{
		{name: "overview", path: ""},
		{name: "tasks", path: "tasks?status=failed&tag=mail.send"},
		{name: "task-failed", path: "tasks/{failed}"},
		{name: "tag", path: "tags/mail.send"},
		{name: "receivers", path: "receivers"},
		{name: "schedules", path: "schedules"},
		{name: "audit", path: "audit", status: http.StatusForbidden},
		{name: "bulk", path: "bulk?verb=retry&status=failed&tag=mail.send", status: http.StatusForbidden},
	}},
	{"read", dashboard.Options{Who: is("shop-ops", dashboard.Admin, "*"), ReadOnly: true}, []look{
		{name: "task-pending", path: "tasks/{pending}"},
		{name: "schedule", path: "schedules/nightly"},
		{name: "bulk", path: "bulk?verb=retry&status=failed&tag=mail.send", status: http.StatusForbidden},
	}},
	{"open", dashboard.Options{Who: func(*http.Request) (dashboard.User, error) {
		return dashboard.User{Role: dashboard.Admin, Tags: []string{"*"}, Open: true}, nil
	}}, []look{{name: "tasks", path: "tasks"}}},
	{"stranger", dashboard.Options{Who: func(*http.Request) (dashboard.User, error) {
		return dashboard.User{}, dashboard.ErrSignIn
	}}, []look{{name: "tasks", path: "tasks", status: http.StatusUnauthorized}}},
	{"unknown", dashboard.Options{Who: func(*http.Request) (dashboard.User, error) {
		return dashboard.User{}, errors.New("the directory of users is away")
	}}, []look{{name: "tasks", path: "tasks", status: http.StatusServiceUnavailable}}},
}

// looks shows pages one after the other in the tab, which keeps what they share.
func (b *tab) looks(t *testing.T, s *site, looks []look, before string) {
	for _, look := range looks {
		t.Run(before+look.name, func(t *testing.T) {
			defer b.within(t)()
			b.shows(s, look)
			b.look(before + look.name)
		})
	}
}

// shows goes to a page.
func (b *tab) shows(s *site, l look) {
	b.t.Helper()
	want := max(l.status, http.StatusOK)
	if got := b.visit(s.path(l.path), l.status); got != want {
		b.t.Fatalf("%s: status %d, want %d", l.path, got, want)
	}
	if l.button != "" {
		b.click(l.button)
	}
	if l.keys != "" {
		b.do(chromedp.KeyEvent(l.keys))
	}
}

// TestWhatOpensLooksRight opens what lies over a page.
func TestWhatOpensLooksRight(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	b := open(t, s.url)
	b.visit("tasks")
	b.do(b.mouse(".menu summary"))
	b.look("menu")
	b.visit("tasks")
	b.do(b.mouse(".menu summary"))
	if !ask[bool](b, "document.querySelector('.panel').getBoundingClientRect().top < innerHeight / 2") {
		t.Error("the menu opens far from its button")
	}
	b.visit("tasks")
	b.do(chromedp.KeyEvent("?"))
	b.look("help")
}

// look takes pictures of the page in all sizes and both themes, and lets axe-core look at it with everything in it
// opened.
func (b *tab) look(name string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe(b.t)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{ // at once
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	servertest.OK(b.t, err)
	for _, size := range sizes {
		b.do(chromedp.EmulateViewport(size.width, size.height, chromedp.EmulateScale(size.scale)))
		b.unfold(true)
		// Charts take the width of the page once it has told them that it has another.
		b.until(fmt.Sprintf("document.documentElement.scrollWidth <= %d", size.width))
		b.unfold(false)
		for i, theme := range themes {
			b.wear(theme)
			b.picture(name + "-" + theme + "-" + size.name)
			if size.scale > 1 {
				continue // so zoomed, the page has the layout of the phone
			}
			rules := allRules
			if i > 0 {
				rules = colorRules // the others do not read colours, and the rest of the page is as it was
			}
			b.unfold(true)
			run := chromedp.Evaluate[[]string](fmt.Sprintf(axeRun, rules), chromedp.EvalAwaitPromise)
			found, err := chromedp.Run(b.ctx, run)
			if err != nil {
				b.t.Fatal(err)
			}
			for _, finding := range found {
				b.t.Errorf("%s, %s, %s: %s", name, theme, size.name, finding)
			}
			b.unfold(false)
		}
	}
}

// wear changes the theme as the server does, by an attribute of the page, and has the charts drawn again.
func (b *tab) wear(theme string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.documentElement.dataset.theme = %q
		document.querySelectorAll(".plot").forEach((e) => { e.drawnFrom = "" })
		document.body.dispatchEvent(new Event("htmx:afterSettle"))`, theme)))
}

// unfold opens or closes everything in the page that can be.
func (b *tab) unfold(open bool) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](
		fmt.Sprintf(`document.querySelectorAll("main details").forEach((d) => { d.open = %t })`, open)))
}

// axe returns axe-core. It is fetched when tests run: its licence is not this repository's.
func axe(t *testing.T) string {
	t.Helper()
	const integrity = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
	axeLock.Lock()
	defer axeLock.Unlock()
	if axeCode == nil {
		var err error
		axeCode, err = os.ReadFile(filepath.Join(npm(t, "axe-core@4.14.0", integrity), "axe.min.js"))
		servertest.OK(t, err)
	}
	return string(axeCode)
}

var (
	axeLock sync.Mutex
	axeCode []byte
)

// The rules that axe-core checks.
const (
	allRules   = `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}`
	colorRules = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

const axeRun = `axe.run(document, {runOnly: %s, resultTypes: ["violations"], preload: false}).then((found) =>
	found.passes.length ? found.violations.flatMap((v) => v.nodes.map((n) =>
		v.id + " " + n.target + ": " + n.failureSummary.split("\n")[1])) : ["axe-core has looked at nothing"])`

// picture keeps what the page looks like, in the folder that the environment names.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("DELAYTASK_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	servertest.OK(b.t, os.MkdirAll(folder, 0o755))
	image, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	servertest.OK(b.t, err)
	servertest.OK(b.t, os.WriteFile(filepath.Join(folder, name+".png"), image, 0o644))
}
