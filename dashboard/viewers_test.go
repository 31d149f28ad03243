package dashboard_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// inMemory returns a site for a bubble, where a database has no place.
func inMemory(t *testing.T, st store.Store) *site {
	t.Helper()
	cfg := scheduler.Config{Logger: slog.New(slog.DiscardHandler), Revision: time.Now()}
	core.BuildOn(&cfg, st, func(c engine.Config) (*engine.Engine, error) {
		manual, err := engine.NewManual(context.Background(), c, time.Now)
		if err != nil {
			return nil, err
		}
		return manual.Engine, nil
	})
	made, err := scheduler.New(t.Context(), nil, cfg)
	servertest.OK(t, err)
	s := &site{Scheduler: made, t: t}
	t.Cleanup(func() { servertest.Stop(t, s.Scheduler) })
	s.h, err = dashboard.New(s.Scheduler, dashboard.Options{
		Who: func(*http.Request) (dashboard.User, error) { return admin, nil }, Log: cfg.Logger,
	})
	servertest.OK(t, err)
	return s
}

// However many dashboards are open, on the same pages and on different ones, the database is asked about five things a
// second at most.
func TestAHundredOpenDashboardsCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const viewers, span, every = 100, 2 * time.Minute, 5 * time.Second
		counted := faultstore.New(memstore.New(memstore.WithClock(time.Now)))
		s := inMemory(t, counted)
		for i := range 30 {
			_, err := s.SaveDelayTask(t.Context(), fmt.Sprintf("shop.%d", i), nil, time.Minute)
			servertest.OK(t, err)
		}
		paths := []string{"/", "/", "/", "/", "/tasks?status=pending", "/tags", "/load", "/failures", "/nodes",
			"/receivers", "/schedules", "/audit"}
		for i := range 10 {
			paths = append(paths, fmt.Sprintf("/tags/shop.%d", i), fmt.Sprintf("/tasks?tag=shop.%d", i))
		}
		// A forecast asks this store by small grids. It sends a database few statements, for all tags at once.
		calls := func() int { return counted.Calls() - counted.CallsOf("CountDue") }
		before := calls()
		var all sync.WaitGroup
		for i := range viewers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * every / viewers)
				for range span / every {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, paths[i%len(paths)], nil)
					r.Header.Set("HX-Request", "true")
					w := httptest.NewRecorder()
					s.h.ServeHTTP(w, r)
					if w.Code != http.StatusOK && w.Code != http.StatusNoContent {
						t.Errorf("%s: status %d: %.300s", r.URL, w.Code, w.Body)
					}
					time.Sleep(every)
				}
			})
		}
		all.Wait()
		if n := calls() - before; n > 5*int(span/time.Second) {
			t.Errorf("%d calls of the store in %v", n, span)
		}
	})
}

func TestAHundredViewersShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { shareOneReading(t, inMemory(t, memstore.New(memstore.WithClock(time.Now)))) })
}

func shareOneReading(t *testing.T, s *site) {
	s.save("order.close")
	var group sync.WaitGroup
	answers := make([]answer, 100)
	for i := range answers {
		group.Go(func() { answers[i] = s.get("/tasks?status=pending&tag=order.close", "HX-Request", "true") })
	}
	group.Wait()
	first := answers[0]
	first.has(t, http.StatusOK, "order.close")
	for _, a := range answers {
		if a.status != http.StatusOK || a.header.Get("ETag") != first.header.Get("ETag") {
			t.Fatalf("status %d", a.status)
		}
	}
	time.Sleep(2 * time.Second)
	s.save("order.close") // after the reading that they share
	same := s.get("/tasks?status=pending&tag=order.close", "HX-Request", "true", "If-None-Match",
		first.header.Get("ETag"))
	if same.status != http.StatusNotModified {
		t.Errorf("status %d, want 304", same.status)
	}
	// Others have to wait for their turns: a refresh of a page without a reading is put off.
	later := 0
	for i := range 100 {
		if a := s.get(fmt.Sprintf("/tasks?tag=t%d", i), "HX-Request", "true"); a.status == http.StatusNoContent {
			later++
		}
	}
	if later < 80 {
		t.Errorf("%d of 100 refreshes had to wait", later)
	}
}
