package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// look is a page.
type look struct {
	name, path string
	button     string // that leads from there to the page
	status     int    // of the answer, 200 by default
}

// looks lists every page.
var looks = []look{
	{name: "overview", path: ""},
	{name: "tasks", path: "tasks"},
	{name: "tasks-pending", path: "tasks?status=pending&tag=order.close"},
	{name: "tasks-failed", path: "tasks?status=failed&tag=mail.send&order=-due"},
	{name: "tasks-invalid", path: "tasks?late_by=soon", status: http.StatusBadRequest},
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

var themes = []string{"light", "dark"}

// sizes are a desk and a phone.
var sizes = []struct{ width, height int64 }{{1280, 900}, {375, 812}}

// TestEveryPageLooksRight shows every page full and empty, in both themes and sizes. The tab fails the test for what a
// page does beyond being shown, axe-core for what keeps people out.
func TestEveryPageLooksRight(t *testing.T) {
	t.Parallel()
	for state, s := range map[string]*site{"full": full(t, ""), "empty": serve(t, "", delaytask.Config{})} {
		for _, look := range looks {
			if state == "empty" && strings.Contains(look.path, "/") {
				continue // it is a page of something
			}
			t.Run(state+"/"+look.name, func(t *testing.T) {
				t.Parallel()
				b := open(t, s.url)
				for _, theme := range themes {
					b.set("theme=" + theme)
					b.shows(s, look)
					b.look(state + "-" + look.name + "-" + theme)
				}
			})
		}
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
}

// TestWhatOpensLooksRight opens what lies over a page.
func TestWhatOpensLooksRight(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	b := open(t, s.url)
	for _, theme := range themes {
		b.set("theme=" + theme)
		b.visit("tasks")
		b.do(b.mouse(".menu summary"))
		b.look("menu-" + theme)
		if !ask[bool](b, "document.querySelector('.panel').getBoundingClientRect().top < innerHeight / 2") {
			t.Error("the menu opens far from its button")
		}
		b.visit("tasks")
		b.do(chromedp.KeyEvent("?"))
		b.look("help-" + theme)
	}
}

// look takes pictures of the page in all sizes, and lets axe-core look at it with everything in it opened.
func (b *tab) look(name string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe(b.t)))
	for _, size := range sizes {
		b.do(chromedp.EmulateViewport(size.width, size.height))
		b.picture(fmt.Sprintf("%s-%d", name, size.width))
		b.unfold(true)
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](axeRun, chromedp.EvalAwaitPromise))
		if err != nil {
			b.t.Fatal(err)
		}
		for _, finding := range found {
			b.t.Errorf("%s at %d px: %s", name, size.width, finding)
		}
		if wide := ask[int](b, "document.documentElement.scrollWidth"); wide > int(size.width) {
			b.t.Errorf("%s at %d px: the page is %d px wide", name, size.width, wide)
		}
		b.unfold(false)
	}
}

// unfold opens or closes everything in the page that can be.
func (b *tab) unfold(open bool) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](
		fmt.Sprintf(`document.querySelectorAll("main details").forEach((d) => { d.open = %t })`, open)))
}

// axe returns axe-core. It is fetched when tests run: its licence is not that of this repository.
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

const axeRun = `axe.run(document, {
	runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
	resultTypes: ["violations"], preload: false,
}).then((found) => found.passes.length ? found.violations.flatMap((v) => v.nodes.map((n) =>
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
