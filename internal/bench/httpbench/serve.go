package httpbench

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
)

// Serve runs the service with its defaults, on a database that has the tables and on a free port of loopback, until ctx
// ends. It calls ready with where that is; who calls there waits until the service runs. It returns the errors of
// [server.Open] and [server.Service.Run].
func Serve(ctx context.Context, dsn string, log *slog.Logger, ready func(url string)) error {
	c := config.Default()
	c.DSN, c.Server.Listen, c.Server.Auth = dsn, "127.0.0.1:0", "none"
	c.Push.Allow = []string{"127.0.0.0/8"}
	s, err := server.Open(ctx, c, log)
	if err != nil {
		return err
	}
	ready(s.URL())
	return s.Run(ctx)
}

// Receive answers calls of the service, on a free port of loopback, while f runs: f gets the URL to be called, and note
// what arrives: the id of each call's task, and the moment.
func Receive(ctx context.Context, note func(id int64, at time.Time), f func(url string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		id, err := strconv.ParseInt(r.Header.Get("Delaytask-Id"), 10, 64)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		note(id, at)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = f("http://" + listener.Addr().String())
	err = errors.Join(err, server.Close())
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
