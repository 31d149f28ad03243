package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// TestASessionBeginsAndEnds signs in to the service by mouse, by keyboard and without script, and out of it by the
// button and with the end of the token.
func TestASessionBeginsAndEnds(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), true, "127.0.0.1:0"
	c.Server.Auth = "token"
	service, err := server.Open(t.Context(), c, quiet)
	servertest.OK(t, err)
	servertest.Run(t, service)
	scheduler := servertest.Open(t, c.DSN, scheduler.Config{})
	id, err := scheduler.SaveDelayTask(t.Context(), "mail.send", "a body", time.Hour)
	servertest.OK(t, err)
	stored := core.Of(scheduler).Store().(*sqlstore.Store)
	grant := func(name string) (secret string) {
		t.Helper()
		secret, token, err := access.New(name, []string{"*"}, []access.Verb{access.All}, 0)
		servertest.OK(t, err)
		_, err = stored.CreateToken(t.Context(), token)
		servertest.OK(t, err)
		return secret
	}
	secret, other := grant("shop-ops"), grant("night-watch")

	b := open(t, service.URL()+"/ui/")
	b.loud = true // htmx writes to the console that a session is over
	signIn := func(with string) {
		t.Helper()
		b.until("document.activeElement.id === 'token'") // typing before that is a complaint of the browser
		b.do(chromedp.SendKeys(chromedp.CSS("#token"), with))
		b.click("button[type=submit]")
	}
	b.visit("tasks?status=failed", http.StatusUnauthorized)
	b.look("login")
	signIn("wrong")
	b.until("document.getElementById('problem')")
	b.look("login-wrong")
	signIn(secret)
	b.until("location.pathname === '/ui/tasks' && location.search === '?status=failed'")
	b.do(b.mouse(".menu summary"))
	b.look("login-menu")
	b.visit("tasks")
	b.do(b.mouse(".menu summary"))
	b.click("form[action$=logout] button")

	// By keyboard alone: the field has the focus at once.
	b.until("document.activeElement.id === 'token'")
	b.do(chromedp.KeyEvent(secret))
	b.enters(kb.Enter)
	b.until("location.pathname !== '/ui/login'")
	b.visit("tasks?status=pending", http.StatusUnauthorized)
	b.press(".menu > summary", kb.Enter)
	b.press("form[action$=logout] button", kb.Enter)
	b.until("location.pathname === '/ui/login' && document.getElementById('token')")

	plain := open(t, b.root)
	plain.withoutScript()
	plain.visit("tasks?status=pending", http.StatusUnauthorized)
	plain.fill("#token", secret)
	plain.click("button[type=submit]")
	plain.until("location.search === '?status=pending'")
	plain.do(plain.mouse(".menu > summary"))
	plain.click("form[action$=logout] button")
	plain.until("location.pathname === '/ui/login'")

	signIn(secret)
	b.visit("tasks", http.StatusUnauthorized)
	servertest.OK(t, stored.DeleteToken(t.Context(), "shop-ops"))
	b.until("location.pathname === '/ui/login'") // by itself, with the next refresh

	b.set("fresh=off")
	signIn(other)
	b.visit(fmt.Sprintf("tasks/%d", id), http.StatusUnauthorized)
	_, err = chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}) // the session, too
	servertest.OK(t, err)
	b.click("form[action$='/show'] button")
	b.look("session-over")
	b.click("a[href$=login]")

	b.bad = []int{http.StatusUnauthorized, http.StatusTooManyRequests}
	servertest.Eventually(t, "the login is bounded", func() bool {
		signIn("wrong")
		b.until("document.getElementById('problem')")
		return strings.Contains(ask[string](b, "document.getElementById('problem').innerText"), "too many")
	})
	b.look("login-too-many")
}
