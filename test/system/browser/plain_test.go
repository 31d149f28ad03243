package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// withoutScript has pages run no script.
func (b *tab) withoutScript() {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	servertest.OK(b.t, err)
}

// TestWithoutScript reads and acts in a browser that runs no script.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	s.mended.Store(true) // a task that is retried does not fail again
	b := open(t, s.url)
	b.withoutScript()
	b.visit("tasks")
	if ask[bool](b, "typeof htmx !== 'undefined'") {
		t.Fatal("the browser runs scripts")
	}
	b.click(".tabs a[href*='status=failed']")
	b.fill("#f-tag", "mail.send")
	b.click(".filter button.first")
	b.click("a.row")
	b.until("document.querySelector('.error-text').innerText.includes('connection refused')")

	pending := s.path("tasks/{pending}")
	b.visit(pending)
	b.click("form[action$='/show'] button")
	b.until("document.querySelector('textarea').value.includes('a@example.com')")
	b.fill("textarea", "changed")
	b.click("form[action=body] button")
	b.until("location.search === '?did=body'")
	act := func(page, verb string) {
		t.Helper()
		b.visit(page)
		form := "details.act:has(form[action$='/" + verb + "'])"
		b.do(b.mouse(form + " > summary"))
		if verb == "reschedule" {
			b.fill("#a-delay", "45m")
		}
		b.click(form + " form button")
		b.until("location.search === '?did=" + verb + "' && document.querySelector('.done')")
	}
	act(pending, "reschedule")
	act(pending, "cancel")
	act(s.path("tasks/{failed}"), "retry")
	task, err := s.Get(t.Context(), delaytask.ID(s.ids["pending"]))
	servertest.OK(t, err)
	if task.Status != delaytask.Cancelled || string(task.Body) != "changed" {
		t.Errorf("the task is %s with the body %q", task.Status, task.Body)
	}

	b.visit("tasks?status=pending&tag=order.close")
	b.do(b.mouse("input[name=id]"))
	b.enters(kb.Enter) // which changes nothing
	if ask[bool](b, "document.querySelector('.done') !== null") {
		t.Error("Enter on a box changes the selected task")
	}
	b.do(b.mouse("input[name=id]"))
	b.do(b.mouse("details.act:has(button[value=cancel]) > summary"))
	b.click("button[value=cancel]")
	b.until("document.querySelector('.done')")

	unfold := func(page, verb string) {
		t.Helper()
		b.visit(page)
		b.do(b.mouse("details.act:has(form[action$='/" + verb + "']) > summary"))
		b.click("form[action$='/" + verb + "'] button")
	}
	unfold("tags/export", "resume")
	b.until("location.search === '?did=resume' && document.querySelector('.done')")
	unfold("tags/export", "pause")
	b.until("location.search === '?did=pause' && document.querySelector('.status.paused')")
	unfold("schedules/nightly", "pause")
	b.click("form[action$='/resume'] button")
	b.until("location.search === '?did=resume'")
	unfold("schedules/hourly", "run")
	b.until("location.search.startsWith('?did=run') && document.querySelector('.done a')")
	unfold(s.path("receivers/{receiver}"), "delete")
	b.until("location.search === '?removed=1' && document.querySelector('.done')")

	b.visit("failures?tag=mail.send")
	b.click("td.do a.button")
	b.fill("#typed", "2")
	b.click("main button.first")
	b.until("location.pathname.startsWith('/bulk/') && document.querySelector('progress')")
	b.visit(s.path("bulk/{running}"))
	b.click("form[action$='/stop'] button")
	s.stopped(t)

	b.visit("tasks")
	b.do(b.mouse(".menu > summary"))
	b.fill("#theme", "dark")
	b.click(".menu button.first")
	b.until("document.documentElement.dataset.theme === 'dark'")
}
