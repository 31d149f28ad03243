package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestWithoutScript reads and acts in a browser that runs no script.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	s := full(t, "")
	b := open(t, s.url)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	servertest.OK(t, err)
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
	b.click("button[value=cancel]")
	b.until("document.querySelector('.done')")

	b.do(b.mouse(".menu > summary"))
	b.fill("#theme", "dark")
	b.click(".menu button.first")
	b.until("document.documentElement.dataset.theme === 'dark'")
}
