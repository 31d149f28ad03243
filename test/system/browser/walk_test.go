package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// TestFromAnAlertToTheMend walks as an operator does: from what the overview says is wrong to its cause, and on until
// the task has run.
func TestFromAnAlertToTheMend(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	b := open(t, s.url)
	finding := func(tag string) string { return ".findings > li:has(a[href$='tags/" + tag + "']) " }
	ran := func(name string) {
		t.Helper()
		s.await(t, name, delaytask.Completed)
		b.visit(s.path("tasks/{" + name + "}"))
		b.until("document.querySelector('.facts .status.completed')")
	}
	task := func(name string) string { return s.path("a.row[href$='{" + name + "}']") }

	// Failing: the group of the error, one of its tasks, why; once its cause is gone, all of the group again.
	b.visit("")
	b.click(finding("mail.send") + "a[href*='group=']")
	b.click(task("failed"))
	b.until("document.querySelector('.why').innerText.includes('connection refused')")
	s.mended.Store(true)
	b.click(".facts a[href*='group=']")
	b.click("a[href*='bulk?verb=retry']")
	b.do(chromedp.SendKeys(chromedp.CSS("#typed"), "3"))
	b.click("main button.first")
	b.look("run")
	ran("failed")

	// Paused: the tag, resume.
	b.visit("")
	b.click(finding("export") + "a[href$='tags/export']")
	b.do(b.mouse("details:has([action$='/resume']) > summary"))
	b.click("[action$='/resume'] button")
	ran("paused")

	// Unserved: a task, why; a process that serves its tag.
	b.visit("")
	b.click(finding("stock.count") + "a[href*='tasks?']")
	b.click(task("unserved"))
	b.until("document.querySelector('.why').innerText.includes('serves')")
	servertest.OK(t, s.Register("stock.count", processor.Func(s.run)))
	ran("unserved")

	b.visit("")
	b.until("document.querySelector('main .done')")
}
