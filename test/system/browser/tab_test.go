package browser

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// tab is a tab with cookies of its own. It notes what no page may do: write to the console, break its policy, open a
// dialog, or ask another site.
type tab struct {
	t    *testing.T
	ctx  context.Context
	root string // the address of the dashboard, with a slash at its end

	mu    sync.Mutex
	wrong []string
	bad   []int // statuses that are wanted
	loud  bool  // the console may get something

	refreshes, unchanged atomic.Int64 // how many were asked for, and how many of them answered with 304
}

// open opens a tab. Settings are the viewer's, such as theme=dark.
func open(t *testing.T, root string, settings ...string) *tab {
	t.Helper()
	if browser == nil {
		missing(t, "there is no chromium here")
	}
	b := &tab{t: t, root: root}
	timed, stop := context.WithTimeout(browser, 8*time.Minute)
	ctx, cancel := chromedp.NewContext(timed, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.note))
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		stop()
		b.complain()
	})
	b.set(settings...)
	return b
}

// within has the tab belong to a subtest, until the function is called.
func (b *tab) within(t *testing.T) (end func()) {
	outer := b.t
	b.t = t
	return func() {
		b.complain()
		b.t = outer
	}
}

// complain fails the test for what was noted.
func (b *tab) complain() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wrong := range b.wrong {
		b.t.Error(wrong)
	}
	b.wrong = nil
}

// set keeps settings as the dashboard does, in a cookie.
func (b *tab) set(settings ...string) {
	b.t.Helper()
	err := chromedp.Do(b.ctx) // the first one opens the tab
	if err == nil && len(settings) > 0 {
		_, err = chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
			Name: "delaytask_view", Value: strings.Join(settings, "&"), URL: b.root,
		})
	}
	servertest.OK(b.t, err)
}

// note hears every event of the tab.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := func(format string, args ...any) { b.wrong = append(b.wrong, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if !b.loud {
			wrong("the console got %s", e.Type)
		}
	case *runtime.EventExceptionThrown:
		wrong("a script failed: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		wanted := slices.ContainsFunc(b.bad, func(status int) bool {
			return strings.Contains(e.Entry.Text, fmt.Sprintf("status of %d ", status))
		})
		if !wanted {
			wrong("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		wrong("a dialog opened: %s", e.Message)
		go func() { // an open dialog would hold up everything
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		// The browser has pictures of its own in its fields for times. The policy lets no page have such ones.
		if !strings.HasPrefix(e.Request.URL, b.root) && !strings.HasPrefix(e.Request.URL, "data:") {
			wrong("the page asks %s", e.Request.URL)
		}
		if e.Request.Headers["HX-Request"] != nil {
			b.refreshes.Add(1)
		}
	case *network.EventResponseReceived:
		if e.Response.Status == http.StatusNotModified {
			b.unchanged.Add(1)
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// visit goes to a page of the dashboard and returns the status of the answer. The bad ones are no complaint.
func (b *tab) visit(path string, bad ...int) int {
	b.t.Helper()
	b.mu.Lock()
	b.bad = bad
	b.mu.Unlock()
	answer, err := chromedp.Run(b.ctx, chromedp.NavigateResponse(b.root+path))
	if err != nil {
		b.t.Fatalf("%s%s: %v", b.root, path, err)
	}
	return int(answer.Status)
}

// click clicks what leads to another page, and waits for that.
func (b *tab) click(selector string) {
	b.t.Helper()
	if _, err := chromedp.RunResponse(b.ctx, b.mouse(selector)); err != nil {
		b.t.Fatalf("click %s: %v", selector, err)
	}
}

// mouse clicks the middle of what the selector names. It needs no script of the page.
func (b *tab) mouse(selector string) chromedp.Action[chromedp.Void] {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q)", selector))
	at := ask[[]float64](b, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2;
		const on = document.elementFromPoint(x, y);
		return e.contains(on) || on.contains(e) ? [x, y] : [];
	})()`, selector))
	if len(at) == 0 {
		b.t.Fatalf("something lies over %s", selector)
	}
	return chromedp.MouseClickXY(at[0], at[1])
}

// fill sets the value of a field.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	ask[chromedp.Void](b, fmt.Sprintf(`document.querySelector(%q).value = %q`, selector, value))
}

// ask evaluates an expression in the page.
func ask[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true, also on a page that is still to come.
func (b *tab) until(expression string) {
	b.t.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	limit := time.After(20 * time.Second)
	for {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && is {
			return
		}
		select {
		case <-every.C:
		case <-limit:
			at, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href+'\\n'+document.body.innerText"))
			b.t.Fatalf("%s does not become true: %v\n%s", expression, err, at)
		}
	}
}
