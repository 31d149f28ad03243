package bench

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

// nowEvent is told twice: when the process is ready, and at the end.
type nowEvent struct {
	Ready     bool            `json:"ready"`
	Want      int             `json:"want"`
	Latencies []time.Duration `json:"latencies"`
}

const (
	nowTag   = "bench.now"
	nowLimit = 20 * time.Second // for tasks that are due at once
)

// nowChild saves tasks that are due at once, or runs those that it or another process saves. The moment of the call travels in the
// body: processes on one machine have the same clock.
func nowChild(ctx context.Context, o order, t *child.Teller) error {
	return o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		l := &latencies{starts: lateness.NewStarts(o.Count), called: make(map[int64]time.Time, o.Count)}
		if o.Serving {
			if err := errors.Join(s.Register(nowTag, l), s.Start(ctx)); err != nil {
				return err
			}
		}
		t.Tell(nowEvent{Ready: true})
		if o.Saving {
			err := pace(ctx, o.Rate, o.Count, func(ctx context.Context) error {
				_, err := s.SaveDelayTask(ctx, nowTag, stamped(time.Now()), 0)
				return err
			})
			if err != nil {
				return err
			}
		}
		if !o.Serving {
			t.Tell(nowEvent{})
			return nil
		}
		spread := time.Duration(o.Count) * time.Second / time.Duration(o.Rate)
		if err := l.starts.Wait(ctx, spread+nowLimit); err != nil {
			return err
		}
		t.Tell(nowEvent{Want: o.Count, Latencies: l.list()})
		return nil
	})
}

// stamped is a body as long as those of all other measurements.
func stamped(at time.Time) string {
	number := strconv.FormatInt(at.UnixNano(), 10)
	return number + strings.Repeat(" ", len(benchBody)-len(number))
}

// latencies is a processor that notes how long ago its tasks were saved.
type latencies struct {
	starts *lateness.Starts
	mu     sync.Mutex
	called map[int64]time.Time
}

// Process implements [processor.Processor].
func (l *latencies) Process(_ context.Context, task *processor.Task) error {
	at := time.Now()
	nano, err := strconv.ParseInt(strings.TrimSpace(string(task.Body)), 10, 64)
	if err != nil {
		return processor.Permanent(err)
	}
	l.mu.Lock()
	l.called[task.ID] = time.Unix(0, nano)
	l.mu.Unlock()
	l.starts.Add(task.ID, at)
	return nil
}

func (l *latencies) list() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for id, called := range l.called {
		if at, started := l.starts.First(id); started {
			all = append(all, at.Sub(called))
		}
	}
	return all
}
