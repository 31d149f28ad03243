package role

import (
	"log/slog"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

// The relay lets each fate happen, and nothing is heard that was not sent.
func TestWakeUpsPassABadNetwork(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	worker, saver := someWaker(t), someWaker(t)
	heard := make(chan []wake.Notice, 10_000)
	worker.Listen(token, func(notices []wake.Notice) { heard <- notices })
	node := row.Node{Token: token, Host: cluster.NewProcess().Host, Name: nodeName, Wake: worker.Row(token)}
	sent := wake.Notice{Tag: "a", From: row.MinTime, To: row.MinTime}
	for n := 0; !worker.seen.all(
		metrics.WakeReceived, metrics.WakeRefused, "relay: dropped", "relay: doubled", "relay: late", "relay: replayed",
		"relay: forged", "relay: garbage",
	); n++ {
		if n == 5000 {
			t.Fatalf("not each fate has happened: %v", worker.seen.counts)
		}
		saver.Notify(node, sent)
		select {
		case notices := <-heard:
			if len(notices) != 1 || notices[0] != sent {
				t.Fatalf("heard %+v", notices)
			}
		case <-time.After(time.Second): // the sender has given up
		}
	}
}

func someWaker(t *testing.T) *waker {
	w, err := newWaker(Order{DSN: "root@tcp(127.0.0.1:3306)/test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func (e *events) all(names ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if e.counts[name] == 0 {
			return false
		}
	}
	return true
}
