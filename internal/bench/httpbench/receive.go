package httpbench

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Receive answers calls of the service, on a free port of loopback, while f runs: f gets the URL to be called, and note what arrives:
// the id of each call's task, and the moment.
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
