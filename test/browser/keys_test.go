package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboardReachesEverything presses Tab through each page: everything that can be used is reached, and the focus is
// seen on it.
func TestKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	b := open(t, s.url)
	for _, look := range looks {
		b.shows(s, look)
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
				t.Errorf("%s: the focus is not seen on %s", look.name, on)
			}
		}
		for _, missed := range ask[[]string](b, `[...window.left].map((e) => e.outerHTML.slice(0, 200))`) {
			t.Errorf("%s: Tab does not reach %s", look.name, missed)
		}
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

// press goes to what the selector names and presses keys there. A button leads to another page.
func (b *tab) press(selector, keys string) {
	b.t.Helper()
	b.tabTo(selector)
	if !ask[bool](b, "document.activeElement.matches('button')") {
		b.do(chromedp.KeyEvent(keys))
	} else if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(keys)); err != nil {
		b.t.Fatalf("%s: %v", selector, err)
	}
}

// TestEveryActionWorksByKeyboard does each action of a task and of a list without a mouse.
func TestEveryActionWorksByKeyboard(t *testing.T) {
	t.Parallel()
	s := full(t, "")
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
			{"button[value=cancel]", kb.Enter}}, "done=1"},
		{"tasks", [][2]string{{".menu > summary", kb.Enter}, {".menu button.first", kb.Enter}}, "tasks"},
	} {
		b.visit(s.path(tt.page))
		for _, step := range tt.steps {
			b.press(step[0], step[1])
		}
		if at := ask[string](b, "location.href"); !strings.Contains(at, tt.want) {
			t.Errorf("%s leads to %s, want %s", tt.page, at, tt.want)
		}
	}
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
