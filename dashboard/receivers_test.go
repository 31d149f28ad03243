package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestReceiversAreShownWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *dashboard.Options) {
		o.Down = func(address string) (time.Time, bool) {
			return time.Now().Add(time.Hour), address == "https://shop.example/hook/hunter2hunter2?key=hunter2"
		}
	})
	s.get("/receivers").has(t, http.StatusOK, "No receiver is registered")
	stored := core.Of(s.Scheduler).Store().(*sqlstore.Store)
	register := func(app string, ttl time.Duration, tags ...string) string {
		w, err := stored.SaveReceiver(t.Context(), row.Receiver{App: app, Tags: tags, TTL: ttl,
			Address: "https://" + app + ".example/hook/hunter2hunter2?key=hunter2", Secret: []byte("a sealed secret")})
		servertest.OK(t, err)
		return fmt.Sprintf("/receivers/%d", w.ID)
	}
	shop := register("shop", time.Hour, "order.close", "order.open")
	both := register("both", time.Hour, "order.close", "mail.send")
	gone := register("gone", -time.Second, "order.close")
	a := s.get("/receivers")
	a.has(t, http.StatusOK, "2 live receivers",
		"https://shop.example/hook/[delaytask-redacted]?key=[delaytask-redacted]",
		"does not answer", "!</span> expired")
	a.body += s.get(shop).body + s.get(gone).body
	for _, secret := range []string{"hunter2", "sealed", "612073"} {
		if strings.Contains(a.body, secret) {
			t.Errorf("a page shows %s", secret)
		}
	}
	s.get("/receivers?tag=mail.send").has(t, http.StatusOK, "1 live receiver<")
	odd, err := stored.SaveReceiver(t.Context(), row.Receiver{App: "odd", TTL: time.Hour, Address: "%zz hunter2",
		Tags: []string{"mail.send"}})
	servertest.OK(t, err)
	s.get("/receivers").has(t, http.StatusOK, "not readable as an address</a>")
	s.get(fmt.Sprintf("/receivers/%d", odd.ID)).has(t, http.StatusOK, "not readable as an address</h1>")

	s.user = dashboard.User{Name: "bob", Role: dashboard.Operator, Tags: []string{"order.*"}}
	a = s.get("/receivers")
	a.has(t, http.StatusOK, "1 live receiver<", "Receivers of tags that you may not see are left out")
	if strings.Contains(a.body, "both") || strings.Contains(a.body, "mail.send") {
		t.Error("a receiver of a foreign tag appears")
	}
	s.get(both).has(t, http.StatusNotFound, "no such receiver")
	if strings.Contains(s.get(shop).body, "/delete") {
		t.Error("an operator is offered to remove a receiver")
	}
	s.post(shop+"/delete", nil).has(t, http.StatusForbidden)
	s.user.Verbs = []string{"register"}
	s.post(both+"/delete", nil).has(t, http.StatusNotFound)
	s.get(shop).has(t, http.StatusOK, shop+"/delete")
	s.post(shop+"/delete", nil).has(t, http.StatusSeeOther)
	s.post(shop+"/delete", nil).has(t, http.StatusNotFound)
	live, _, err := stored.Receivers(t.Context())
	servertest.OK(t, err)
	if len(live) != 2 || live[0].App != "both" || live[1].App != "odd" {
		t.Errorf("left are %v", live)
	}
}
