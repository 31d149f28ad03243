package browser

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestASessionBeginsAndEnds signs in to the service, and out of it by the button and with the end of the token.
func TestASessionBeginsAndEnds(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), true, "127.0.0.1:0"
	c.Server.Auth = "token"
	service, err := server.Open(t.Context(), c, quiet)
	servertest.OK(t, err)
	servertest.Run(t, service)
	stored := bridge.Store(servertest.Open(t, c.DSN, delaytask.Config{})).(*sqlstore.Store)
	secret, token, err := access.New("shop-ops", []string{"*"}, []access.Verb{access.All}, 0)
	servertest.OK(t, err)
	servertest.OK(t, stored.CreateToken(t.Context(), token))

	b := open(t, service.URL()+"/ui/")
	b.loud = true // htmx writes to the console that a session is over
	signIn := func(with string) {
		t.Helper()
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
	b.click("form[action$=logout] button")
	signIn(secret)
	b.visit("tasks", http.StatusUnauthorized)
	servertest.OK(t, stored.DeleteToken(t.Context(), token.Name))
	b.until("location.pathname === '/ui/login'") // by itself, with the next refresh
}
