package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

// callTag is the service's own tag for tasks that name an address to call.
const callTag = "http"

// httpWebhook measures tasks that become due at a rate, from their due times to the receiver that they name.
func (o *options) httpWebhook(rate int) bench.Measurement {
	name := fmt.Sprintf("http.webhook.%d", rate)
	return o.served(bench.Measurement{
		Name: name, Turns: 1,
		Figures: lateFigures(name,
			fmt.Sprintf("from the due time until the call has reached a receiver here, at %d tasks a second", rate)),
	}, func(ctx context.Context, r *bench.Runner, d *bench.Database, c *client.Client) error {
		if err := d.SameClock(ctx); err != nil {
			return err
		}
		span := r.Lasting(bench.LateSpan)
		n := max(1, int(float64(rate)*span.Seconds()))
		seen := lateness.NewStarts(n)
		err := receive(ctx, seen.Add, func(url string) error {
			save := bench.SaverOf(c, callTag, map[string]string{"url": url, "body": bench.Body})
			begin, err := bench.SaveAhead(ctx, n, span, r.Ahead(), save)
			if err != nil {
				return err
			}
			if err := seen.Wait(ctx, time.Until(begin)+span+bench.RunLimit); err != nil {
				return err
			}
			return awaitNone(ctx, d, "tag = ? AND status IN (?, ?)", callTag, row.Pending, row.Executing)
		})
		if err != nil {
			return err
		}
		return judge(ctx, r, d, callTag, name, seen)
	})
}

// receive answers calls of the service, on a free port of loopback, while f runs. f gets the URL; note gets the id of
// each call's task, and the moment.
func receive(ctx context.Context, note func(id int64, at time.Time), f func(url string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	err = errors.Join(f("http://"+listener.Addr().String()), server.Close())
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
