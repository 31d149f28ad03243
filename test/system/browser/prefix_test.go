package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// TestUnderEveryPrefix walks through a dashboard at the root, in a mux, and behind proxies.
func TestUnderEveryPrefix(t *testing.T) {
	t.Parallel()
	s := serve(t, "", scheduler.Config{})
	listen := func(pattern string, h http.Handler) string {
		mux := http.NewServeMux()
		mux.Handle(pattern, h)
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return server.URL
	}
	// A proxy passes the header Host on, as docs/service.md asks for.
	to := func(target string) http.Handler {
		u, err := url.Parse(target)
		servertest.OK(t, err)
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host
		}}
	}
	mounted := listen("/ui/", http.StripPrefix("/ui", s.pages))
	for name, root := range map[string]string{
		"at the root":                  s.url,
		"in a mux":                     mounted + "/ui/",
		"behind a proxy":               listen("/ui/", to(mounted)) + "/ui/",
		"behind a proxy that strips":   listen("/ops/t/", http.StripPrefix("/ops/t", to(s.url))) + "/ops/t/",
		"behind a proxy that replaces": listen("/a/b/", http.StripPrefix("/a/b", to(mounted+"/ui"))) + "/a/b/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, err := s.SaveDelayTask(t.Context(), "report/daily", "ok", time.Hour)
			servertest.OK(t, err)
			b := open(t, root)
			b.visit("")
			b.click(".top nav a[href$=tasks]")
			b.click(".tabs a[href*=pending]")
			b.click("a.row[href$='" + strconv.FormatInt(id, 10) + "']")
			b.until("getComputedStyle(document.querySelector('header')).display === 'flex' && typeof htmx === 'object'")
			b.do(b.mouse("details:has([action$='/cancel']) > summary"))
			b.click("[action$='/cancel'] button")
			b.until("document.querySelector('.done') && document.querySelector('.status.cancelled')")
			b.do(chromedp.Evaluate[chromedp.Void](`htmx.trigger("#live", "refresh")`))
			b.click(".facts a[href*='tags/']")
			b.until("document.querySelector('h1').textContent.includes('report/daily')")
			b.do(b.mouse(".menu summary"))
			b.fill("#theme", "dark")
			b.click(".menu button.first")
			b.until("document.documentElement.dataset.theme === 'dark'")
			b.until("location.pathname.endsWith('/tags/report%2Fdaily')")
			b.do(chromedp.SendKeys(chromedp.CSS("#find"), strconv.FormatInt(id, 10)))
			if _, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent("\r")); err != nil {
				t.Fatal(err)
			}
			b.until("location.pathname.endsWith('/tasks/" + strconv.FormatInt(id, 10) + "')")
			if got := ask[string](b, "document.documentElement.dataset.theme"); got != "dark" {
				t.Errorf("the theme is %s on another page", got)
			}
		})
	}
}
