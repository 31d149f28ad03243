package httpbench

import (
	"context"
	"log/slog"

	"github.com/delaytask/delaytask/internal/config"
	"github.com/delaytask/delaytask/internal/service"
)

// Serve runs the service with its defaults, on a database that has the tables and on a free port of loopback, until ctx ends. It
// calls ready with where that is; who calls there waits until the service runs. It returns the errors of [service.Open] and
// [service.Service.Run].
func Serve(ctx context.Context, dsn string, log *slog.Logger, ready func(url string)) error {
	c := config.Default()
	c.DSN, c.Server.Listen, c.Server.Auth = dsn, "127.0.0.1:0", "none"
	c.Push.Allow = []string{"127.0.0.0/8"}
	s, err := service.Open(ctx, c, log)
	if err != nil {
		return err
	}
	ready(s.URL())
	return s.Run(ctx)
}
