package server

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestSchedulesOfTheSettingsAreDeclared(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		called := make(chan http.Header, 10)
		hook := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) { called <- r.Header })
		cfg := config.Default()
		cfg.DSN, cfg.Migrate, cfg.Server.Listen, cfg.Push.Allow = db.DSN, true, "127.0.0.1:0", []string{"127.0.0.1"}
		cfg.SchedulesOwner, cfg.SchedulesRevision = "shop", time.Unix(1.7e9, 0).UTC()
		calls := delaytask.Schedule{Tag: "http"}
		cfg.Schedules = map[string]config.Schedule{
			"ping/it": {Schedule: calls, Every: "1s", Body: `{"url":"` + hook + `"}`},
		}
		s, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
		servertest.OK(t, err)
		servertest.Run(t, s)
		h := servertest.Receive(t, called, "a tick is run")
		if tick, err := time.Parse(time.RFC3339, h.Get("Delaytask-Tick")); h.Get("Delaytask-Schedule") != "ping/it" ||
			err != nil || !strings.HasSuffix(h.Get("Delaytask-Tick"), "Z") || time.Since(tick) > time.Minute {
			t.Errorf("got the headers %v", h)
		}

		cfg.Schedules["ping/it"] = config.Schedule{Schedule: calls, Every: "1s", Body: `{"url":"ftp://x"}`}
		refused, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), "schedules.ping/it.body: ") {
			t.Errorf("a call of ftp: %v, %v", refused, err)
		}
	})
}
