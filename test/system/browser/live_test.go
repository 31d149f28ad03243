package browser

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// TestAPageRefreshesWhileNothingIsInItsWay changes tasks beside a list that someone looks at.
func TestAPageRefreshesWhileNothingIsInItsWay(t *testing.T) {
	t.Parallel()
	s := serve(t, "", scheduler.Config{}) // nothing runs, so nothing changes by itself
	appears := func() string {
		t.Helper()
		return fmt.Sprintf("document.getElementById('t%d')", s.save(t, "new", "mail.send", "ok", 100*time.Hour))
	}
	b := open(t, s.url)
	first := appears()
	b.visit("tasks?status=pending&tag=mail.send")
	b.do(chromedp.KeyEvent("j"))
	b.until(appears())
	if !ask[bool](b, "document.activeElement.matches('a.row') && "+first+".contains(document.activeElement)") {
		t.Error("a refresh takes the focus away")
	}
	servertest.Eventually(t, "an unchanged page is answered with 304", func() bool { return b.unchanged.Load() > 0 })

	// stays reports that not even a look at the page refreshes it.
	stays := func(why string) {
		t.Helper()
		before := b.refreshes.Load()
		changed := appears()
		b.do(chromedp.Evaluate[chromedp.Void](`document.dispatchEvent(new Event("visibilitychange"))
			fetch("tasks", {cache: "no-store"}).then(() => { window.asked = true })`))
		b.until("window.asked")
		b.do(chromedp.Evaluate[chromedp.Void]("window.asked = false"))
		if b.refreshes.Load() != before || ask[bool](b, "!!"+changed) {
			t.Errorf("the page is refreshed %s", why)
		}
	}
	b.do(chromedp.KeyEvent("p"))
	stays("while that is paused")
	blur := chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()") // which holds up refreshes by itself
	b.do(chromedp.KeyEvent("p"), b.mouse("input[name=id]"), blur)
	stays("while a row is selected")
	if !ask[bool](b, "document.querySelector('input[name=id]').checked") {
		t.Error("the selection is lost")
	}
	b.do(b.mouse("input[name=id]"), blur, chromedp.Evaluate[chromedp.Void](
		`Object.defineProperty(document, "hidden", {value: true, configurable: true})`))
	stays("while the tab is hidden")
	b.do(chromedp.Evaluate[chromedp.Void]("delete document.hidden"))
	b.until("document.getElementById('t" + strconv.FormatInt(s.ids["new"], 10) + "')")
	_, err := s.Cancel(t.Context(), delaytask.ID(s.ids["new"]))
	servertest.OK(t, err)
	b.until("!document.getElementById('t" + strconv.FormatInt(s.ids["new"], 10) + "')")
}
