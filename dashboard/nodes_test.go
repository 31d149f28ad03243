package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

// A node shows what it executes, told by the token of its process: a process that died may have had its name and pid.
func TestANodeShowsWhatItExecutes(t *testing.T) {
	t.Parallel()
	s := open(t)
	began, end := make(chan struct{}, 2), make(chan struct{})
	defer close(end)
	for _, tag := range []string{"order.close", "mail.send"} {
		servertest.OK(t, s.Register(tag, processor.Func(func(context.Context, *delaytask.Task) error {
			began <- struct{}{}
			<-end
			return nil
		})))
	}
	servertest.OK(t, s.Start(t.Context()))
	ids := map[string]int64{}
	for tag := range map[string]int{"order.close": 0, "mail.send": 0} {
		id, err := s.SaveDelayTask(t.Context(), tag, "x", 0, delaytask.WithKey("key-"+tag))
		servertest.OK(t, err)
		ids[tag] = id
		servertest.Receive(t, began, "a task runs")
	}
	nodes, err := s.Nodes(t.Context())
	servertest.OK(t, err)
	self := nodes[0]
	// A process before it had its name and pid, and has left a task.
	stored := core.Of(s.Scheduler).Store()
	servertest.OK(t, stored.Insert(t.Context(), nil, []row.Row{{
		ID: 77, Tag: "order.lost", TTR: time.Minute, Expected: row.At(s.Now()), Due: row.At(s.Now()),
	}}))
	_, err = stored.Claim(t.Context(), row.Claim{
		Rows: []row.Ref{{ID: 77}}, Executor: row.Executor{Process: 9, Claim: 1},
	})
	servertest.OK(t, err)
	_, err = stored.Join(t.Context(), row.Node{Number: 900, Token: "f", Name: hostile[0], Leaving: true}, 0)
	servertest.OK(t, err)

	one := fmt.Sprintf("/nodes/%d", self.Number)
	s.get("/nodes").has(t, http.StatusOK, "blue", "✓</span> alive", "⊘</span> leaving", "&lt;script&gt;alert(1)",
		"1 task is in flight in a process that is not listed")
	s.get(one).has(t, http.StatusOK, "key-order.close", "key-mail.send", fmt.Sprintf("../tasks/%d", ids["mail.send"]))
	s.get("/nodes/901").has(t, http.StatusNotFound, "no such node")
	s.get("/nodes/x").has(t, http.StatusNotFound, "no such node")

	s.user = dashboard.User{Name: "bob", Role: dashboard.Viewer, Tags: []string{"order.*"}}
	a := s.get(one)
	a.has(t, http.StatusOK, "key-order.close", `Tasks in flight <span class="quiet">1</span>`)
	if all := a.body + s.get("/nodes").body; strings.Contains(all, "mail.send") {
		t.Error("a foreign tag appears")
	}
	s.user.Role, s.user.Verbs = "", []string{"read"}
	s.get("/nodes").has(t, http.StatusForbidden)
	s.get(one).has(t, http.StatusForbidden)
}
