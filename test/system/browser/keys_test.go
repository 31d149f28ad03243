package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestKeyboardReachesEverything presses Tab through each page: everything that can be used is reached, and the focus is
// seen on it.
func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	for name, looks := range map[string][]look{"pages": pages, "states": states} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, s.url)
			for _, look := range looks {
				b.reaches(s, look)
			}
		})
	}
}

// reaches presses Tab through a page.
func (b *tab) reaches(s *site, l look) {
	b.t.Helper()
	b.shows(s, l)
	b.unfold(true)
	b.do(chromedp.Evaluate[chromedp.Void](`
			window.left = new Set([...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
				.filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.type !== "hidden"))`))
	for range 1000 {
		b.do(chromedp.KeyEvent(kb.Tab))
		on := ask[string](b, focused)
		if on == "end" {
			break
		}
		if on != "seen" {
			b.t.Errorf("%s: the focus is not seen on %s", l.name, on)
		}
	}
	for _, missed := range ask[[]string](b, `[...window.left].map((e) => e.outerHTML.slice(0, 200))`) {
		b.t.Errorf("%s: Tab does not reach %s", l.name, missed)
	}
}

// focused notes that Tab has reached an element, and says whether that is seen.
const focused = `(() => {
	const e = document.activeElement;
	if (e === document.body) return "end";
	window.left.delete(e);
	const style = getComputedStyle(e), at = e.getBoundingClientRect();
	const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 && at.width > 0 &&
		at.bottom > 0 && at.top < innerHeight && at.right > 0 && at.left < innerWidth;
	return seen ? "seen" : e.outerHTML.slice(0, 200);
})()`

// tabTo presses Tab until the focus is on what the selector names.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 300 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if ask[bool](b, "document.activeElement.matches(`"+selector+"`)") {
			return
		}
	}
	b.t.Fatalf("Tab does not reach %s", selector)
}

// press goes to what the selector names and presses keys there. A button and a link lead to another page.
func (b *tab) press(selector, keys string) {
	b.t.Helper()
	b.tabTo(selector)
	if !ask[bool](b, "document.activeElement.matches('button, a')") {
		b.do(chromedp.KeyEvent(keys))
	} else {
		b.enters(keys)
	}
}

// enters presses keys that lead to another page.
func (b *tab) enters(keys string) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(keys)); err != nil {
		b.t.Fatal(err)
	}
}

// TestEnterOnABoxSendsNothing tells a selection from what is done with it.
func TestEnterOnABoxSendsNothing(t *testing.T) {
	t.Parallel()
	b := open(t, full(t, "").url)
	b.visit("tasks?status=pending&tag=order.close")
	b.do(chromedp.Evaluate[chromedp.Void](
		`document.addEventListener("submit", (e) => { document.body.dataset.sent = !e.defaultPrevented })`))
	for _, keys := range []string{" ", kb.Enter} {
		b.press("input[name=id]", keys)
	}
	if sent := ask[string](b, "document.body.dataset.sent || ''"); sent == "true" {
		t.Error("Enter sends the form")
	}
}

// TestEveryActionWorksByKeyboard does each action without a mouse.
func TestEveryActionWorksByKeyboard(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	s.mended.Store(true) // a task that is retried does not fail again
	b := open(t, s.url)
	for _, tt := range []struct {
		page  string
		steps [][2]string // what Tab goes to, and what is pressed there
		want  string      // in the address that follows
	}{
		{"tasks/{pending}", [][2]string{{"form[action$='/show'] button", kb.Enter}, {"textarea", "x"},
			{"form[action=body] button", kb.Enter}}, "did=body"},
		{"tasks/{pending}", [][2]string{{"details:has([action$='/reschedule']) > summary", kb.Enter},
			{"#a-delay", "45m"}, {"[action$='/reschedule'] button", kb.Enter}}, "did=reschedule"},
		{"tasks/{executing}", [][2]string{{"details:has([action$='/cancel']) > summary", kb.Enter},
			{"[action$='/cancel'] button", kb.Enter}}, "did=cancel"},
		{"tasks/{failed}", [][2]string{{"details:has([action$='/retry']) > summary", kb.Enter},
			{"[action$='/retry'] button", kb.Enter}}, "did=retry"},
		{"tasks?status=pending&tag=order.close", [][2]string{{"input[name=id]", " "},
			{"details:has(button[value=cancel]) > summary", kb.Enter}, {"button[value=cancel]", kb.Enter}}, "done=1"},
		{"tasks", [][2]string{{".menu > summary", kb.Enter}, {".menu button.first", kb.Enter}}, "tasks"},
		{"tags/export", [][2]string{{"details:has([action$='/resume']) > summary", kb.Enter},
			{"[action$='/resume'] button", kb.Enter}}, "did=resume"},
		{"tags/export", [][2]string{{"details:has([action$='/pause']) > summary", kb.Enter},
			{"[action$='/pause'] button", kb.Enter}}, "did=pause"},
		{"schedules/nightly", [][2]string{{"details:has([action$='/pause']) > summary", kb.Enter},
			{"#a-reason", "repair"}, {"[action$='/pause'] button", kb.Enter}}, "did=pause"},
		{"schedules/nightly", [][2]string{{"[action$='/resume'] button", kb.Enter}}, "did=resume"},
		{"schedules/hourly", [][2]string{{"details:has([action$='/run']) > summary", kb.Enter},
			{"[action$='/run'] button", kb.Enter}}, "did=run"},
		{"schedules/nightly", [][2]string{{"form[action$='/show'] button", kb.Enter}}, "/show"},
		{"failures", [][2]string{{"td.do a.button", kb.Enter}, {"#typed", "2"},
			{"main button.first", kb.Enter}}, "/bulk/"}, // one of the three was retried above
		{"bulk/{running}", [][2]string{{"[action$='/stop'] button", kb.Enter}}, "bulk/"},
		{"receivers", [][2]string{{"a.row[href$='receivers/{receiver}']", kb.Enter},
			{"details:has([action$='/delete']) > summary", kb.Enter}, {"[action$='/delete'] button", kb.Enter}},
			"removed=1"},
	} {
		b.visit(s.path(tt.page))
		for _, step := range tt.steps {
			b.press(s.path(step[0]), step[1])
		}
		if at := ask[string](b, "location.href"); !strings.Contains(at, tt.want) {
			t.Errorf("%s leads to %s, want %s", tt.page, at, tt.want)
		}
	}
	s.stopped(t)
}

// stopped waits until someone has stopped the bulk change that runs.
func (s *site) stopped(t *testing.T) {
	t.Helper()
	servertest.Eventually(t, "the bulk change is stopped", func() bool {
		run, _ := core.Of(s.Scheduler).Bulks().Get(s.runs["running"])
		return run.Outcome == bulk.Stopped
	})
}

// TestKeys presses each key that means something, switched on and off.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	list, task := s.path("tasks?status=failed&tag=mail.send"), s.path("tasks/{failed}")
	here := "document.activeElement.closest('tr')?.rowIndex"
	b := open(t, s.url)
	for _, tt := range []struct{ page, keys, want string }{
		{list, "/", "document.activeElement.id === 'find'"},
		{list, "?", "document.getElementById('help').open"},
		{list, "jj", here + " === 2"},
		{list, "jjk", here + " === 1"},
		{list, "jjx", "document.querySelectorAll('tr')[2].querySelector('input').checked"},
		{list, "j" + kb.Enter, "location.pathname.startsWith('/tasks/')"},
		{list, "p", "!document.getElementById('held').hidden"},
		{list, "u", "document.querySelector('footer strong').textContent.startsWith('UTC')"},
		{task, "gt", "location.pathname === '/tasks'"},
		{task, "e", "!window.asked"},
	} {
		for _, keys := range []string{"on", "off"} {
			b.set("keys="+keys, "zone=Asia/Tokyo")
			b.visit(tt.page)
			b.do(chromedp.Evaluate[chromedp.Void]("window.asked = true"), chromedp.KeyEvent(tt.keys))
			if keys == "on" {
				b.until(tt.want)
			} else if ask[bool](b, "!!("+tt.want+")") {
				t.Errorf("%s: the key %s does something where keys are off", tt.page, tt.keys)
			}
		}
	}
}
