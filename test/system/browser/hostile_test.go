package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// hostile lists texts that are markup or script where a page forgets that they are text. Elements that they make have
// the class hurt.
var hostile = []string{
	`<script class=hurt>hurt()</script>`, `"><img class=hurt src=x onerror=hurt()>`, `' onfocus='hurt()' class='hurt`,
	`</textarea></pre></title></svg><b class=hurt>`, `<svg/class=hurt onload=hurt()>`, `javascript:hurt()`, `{{hurt}}`,
	`<!--`, `]]>`, `&lt;b class=hurt&gt;`, `\u003cb class=hurt\u003e`,
}

// addresses lists what a receiver may have as its address in the table.
func addresses() []string {
	made := []string{
		"https://example.com/\u202egpj.exe", "https://user:pass@example.com/", "https://exa\u202emple.com/%zz", "%zz",
		"",
		"https://example.com/" + strings.Repeat("long/", 400), "data:text/html," + hostile[0],
	}
	for _, text := range hostile {
		made = append(made, text, "https://example.com/"+text+"?"+text+"#"+text)
	}
	return made
}

// harmless fails the test where a page has made more than text of them.
func (b *tab) harmless(page string) {
	b.t.Helper()
	made := ask[[]string](b, `[...document.querySelectorAll(
		".hurt, [onfocus], script:not([src]), a[href^='javascript']")].map((e) => e.outerHTML.slice(0, 200))`)
	for _, element := range made {
		b.t.Errorf("%s: a text made %s", page, element)
	}
}

// TestHostileTextIsText puts the texts wherever a task, a process or an address can carry text.
func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	all := strings.Join(hostile, " ")
	s := serve(t, "", scheduler.Config{NodeName: hostile[0] + hostile[1], Address: "https://example.com/" + hostile[1]})
	fails := func(context.Context, *delaytask.Task) error { return errors.New(all) }
	servertest.OK(t, s.Register("mail.send", processor.Func(fails)))
	servertest.OK(t, s.Start(t.Context()))
	save := func(name, tag string, delay time.Duration) {
		t.Helper()
		s.save(t, name, tag, all, delay, delaytask.WithKey(all[:250]), delaytask.WithHeader("note", all))
	}
	save("failed", "mail.send", 0)
	save("pending", "order.close", time.Hour)
	save("late", "stock.count", 0)
	_, err := s.SaveSchedule(t.Context(), "nightly", delaytask.Every(time.Hour), "order.close", all)
	servertest.OK(t, err)
	servertest.OK(t, s.PauseSchedule(t.Context(), "nightly", delaytask.Reason(all)))
	s.await(t, "failed", delaytask.Failed)
	nodes, err := s.Nodes(t.Context())
	servertest.OK(t, err)
	s.ids["node"] = int64(nodes[0].Number)

	b := open(t, s.url)
	shown := map[string][]string{ // what some pages must show
		"tasks-pending": {all[:250]}, "tasks-failed": {all[:150]}, "task-failed": {all, all[:250], "note", hostile[0]},
		"body": {all}, "nodes": {hostile[0] + hostile[1]}, "failures-of-tag": {hostile[0]},
	}
	for _, look := range pages {
		if strings.Contains(s.path(look.path), "{") {
			continue // there is no such task
		}
		b.shows(s, look)
		b.harmless(look.name)
		text := ask[string](b, "document.body.textContent + document.querySelector('textarea')?.value")
		for _, want := range shown[look.name] {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %s", look.name, want)
			}
		}
	}
	parameters := []string{"tag", "status", "key", "app", "due_from", "late_by", "error", "group", "order", "cursor",
		"did", "done", "span", "verb", "q", "who", "action", "next", "back"}
	for _, path := range []string{"", "tasks", s.path("tasks/{failed}"), "tags", "load", "failures", "nodes",
		"receivers", "schedules", "audit", "bulk", "find"} {
		for _, text := range hostile[:3] {
			values := url.Values{}
			for i, name := range parameters {
				if path == "tasks" { // one mistake would hide the others
					b.visit(path+"?"+name+"="+url.QueryEscape(text), 400)
					b.harmless(path + " with " + name)
				}
				if i > 10 {
					values.Set(name, text)
				}
			}
			b.visit(path+"?"+values.Encode(), 400, 404)
			b.harmless(path + " with parameters")
			b.visit(path+"/"+url.PathEscape(text), 400, 404, 405)
			b.harmless("below " + path)
		}
	}
}

// TestHostileAddressesAreText puts the texts into the addresses of receivers, and looks at them wherever they show: in
// the list, at a page of each, and in the audit log once they are removed.
func TestHostileAddressesAreText(t *testing.T) {
	t.Parallel()
	s := serve(t, "", scheduler.Config{})
	stored := core.Of(s.Scheduler).Store().(*sqlstore.Store)
	var ids []int64
	for i, address := range addresses() {
		w, err := stored.SaveReceiver(t.Context(), row.Receiver{
			App: hostile[i%len(hostile)], Address: address, Tags: []string{"order.close"}, TTL: time.Hour,
		})
		servertest.OK(t, err)
		ids = append(ids, w.ID)
	}
	b := open(t, s.url)
	looks := func(page string) {
		t.Helper()
		b.harmless(page)
		for _, wrong := range ask[[]string](b, `[...document.querySelectorAll("main a, main h1")].filter((e) =>
			!e.innerText.trim() || e.protocol && !e.href.startsWith(location.origin)).map((e) => e.outerHTML)`) {
			t.Errorf("%s: a link leads elsewhere, or has no text: %s", page, wrong)
		}
		if text := ask[string](b, "document.body.innerText"); strings.ContainsAny(text, "\u202e") ||
			strings.Contains(text, "pass@") {
			t.Errorf("%s shows what deceives, or a password: %s", page, text)
		}
	}
	for _, page := range []string{"receivers", "receivers?app=" + url.QueryEscape(hostile[0])} {
		b.visit(page)
		looks(page)
	}
	b.look("hostile-receivers")
	const removed = 8 // one of each kind
	for i, id := range ids {
		page := fmt.Sprintf("receivers/%d", id)
		b.visit(page)
		looks(page)
		if i >= removed {
			continue
		}
		if i < 3 {
			b.look(fmt.Sprintf("hostile-receiver-%d", i))
		}
		b.do(b.mouse("details:has([action$='/delete']) > summary"))
		b.click("[action$='/delete'] button")
		b.until("document.querySelector('.done')")
	}
	b.visit("audit?action=receiver.delete")
	looks("audit")
	b.look("hostile-audit")
	if n := ask[int](b, "document.querySelectorAll('tbody tr').length"); n != removed {
		t.Errorf("the audit log has %d removals, want %d", n, removed)
	}
}
