package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/bench/httpbench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	pullClients = 200
	pullMost    = 50
	pullWait    = 30 * time.Second
)

// httpPopAt measures tasks that become due at a rate, from their due times to the clients that wait for them.
func httpPopAt(rate int) measurement {
	name := fmt.Sprintf("http.pop.%d", rate)
	return measurement{
		name: name, apart: true, once: true,
		figures: []figure{
			{name + ".per_s", fmt.Sprintf("tasks that 200 clients get by long polls and finish, due at %d a second",
				rate)},
			{name + ".p50_ms", "from the due time until half of the tasks had been received"},
			{name + ".p99_ms", "99 of 100 tasks are received at most so late"},
			{name + ".max_ms", "all"},
			{name + ".early", "tasks that were received before they were due"},
			{name + ".lost", "tasks that were not received, or are not completed"},
			{name + ".duplicates", "tasks received beyond the first time"},
		},
		takes: func(w workload) time.Duration {
			return httpTakes + w.ahead() + w.late + w.lasting(time.Duration(rate)*4*time.Millisecond)
		},
		measure: served(func(ctx context.Context, r *run, d *database, c *httpbench.Client) error {
			return r.pull(ctx, d, c, name, rate)
		}),
	}
}

// pull is judged like lateness: by the due times in the table and this machine's clock.
func (r *run) pull(ctx context.Context, d *database, c *httpbench.Client, name string, rate int) error {
	if err := d.sameClock(ctx); err != nil {
		return err
	}
	n := max(1, int(float64(rate)*r.workload.late.Seconds()))
	begin, err := saveAhead(ctx, n, r.workload.late, r.workload.ahead(), byClientAt(c))
	if err != nil {
		return err
	}
	seen := lateness.NewStarts(n)
	clients := httpbench.Pull{Tag: latenessTag, Clients: pullClients, Max: pullMost, Wait: pullWait}
	last, err := clients.Run(ctx, c, seen, time.Until(begin)+r.workload.late+latenessLimit)
	if err != nil {
		return err
	}
	j, err := r.judge(ctx, d, latenessTag, name, seen)
	if err == nil {
		r.figures.add(name+".per_s", float64(j.Once)/last.Sub(begin).Seconds())
	}
	return err
}

// Each round of these has a task and one long poll for it, so that no other poll or timer helps.
const (
	pollRound = 100 * time.Millisecond // a guess of what the rounds of all kinds take together
	pollAhead = 20 * time.Millisecond  // a poll waits so long for its task
)

// pollKinds are the moments at which a long poll meets a task.
var pollKinds = []struct {
	key, about string
	tag        func(round int) string
	before     bool          // the task is saved before the poll arrives
	delay      time.Duration // from the save to the due time
}{
	{"due", "a task that is due already, of a tag that nobody took from", freshTag("due"), true, -pollAhead},
	{"soon", "a task that falls due in 20 ms, of a tag that nobody took from", freshTag("soon"), true, pollAhead},
	{"saved", "a task that is saved while the poll waits, of a tag that nobody took from", freshTag("saved"), false,
		pollAhead},
	{"known", "a task that falls due in 20 ms, of a tag that was taken from before",
		func(int) string { return "bench:known" }, true, pollAhead},
}

func freshTag(kind string) func(int) string {
	return func(round int) string { return fmt.Sprintf("bench:%s:%d", kind, round) }
}

var httpPoll = measurement{
	name: "http.poll", apart: true, once: true,
	figures: slices.Collect(func(yield func(figure) bool) {
		for _, k := range pollKinds {
			ok := yield(figure{"http.poll." + k.key + ".p50_ms", "until half of the long polls had " + k.about}) &&
				yield(figure{"http.poll." + k.key + ".p99_ms", "99 of 100 take at most"})
			if !ok {
				return
			}
		}
	}),
	takes: func(w workload) time.Duration { return httpTakes + w.late },
	measure: served(func(ctx context.Context, r *run, d *database, c *httpbench.Client) error {
		if err := d.sameClock(ctx); err != nil {
			return err
		}
		return r.poll(ctx, c)
	}),
}

// poll takes turns between the kinds, so that each meets the same machine.
func (r *run) poll(ctx context.Context, c *httpbench.Client) error {
	took := make([][]time.Duration, len(pollKinds))
	for round := range max(1, int(r.workload.late/pollRound)) {
		for i, k := range pollKinds {
			due := time.Now().Add(k.delay)
			task := httpbench.Task{Tag: k.tag(round), At: due.UTC()}
			late, err := pollFor(ctx, c, task, k.before)
			if err != nil {
				return err
			}
			took[i] = append(took[i], late)
		}
	}
	for i, k := range pollKinds {
		r.figures.addPercentiles("http.poll."+k.key, took[i], p50, p99)
	}
	return nil
}

// pollFor saves the task and polls for it. It returns the time from the later of the poll's begin and the due time
// until the answer.
func pollFor(ctx context.Context, c *httpbench.Client, task httpbench.Task, before bool) (time.Duration, error) {
	saved := make(chan error, 1)
	save := func() { saved <- c.Save(ctx, task) }
	if before {
		save()
	} else {
		go save()
	}
	began := time.Now()
	got, at, err := c.Pop(ctx, task.Tag, 1, pullWait)
	if err := errors.Join(<-saved, err); err != nil {
		return 0, fmt.Errorf("save a task and poll for it: %w", err)
	}
	if len(got) != 1 {
		return 0, fmt.Errorf("a long poll brought %d tasks", len(got))
	}
	if task.At.After(began) {
		began = task.At
	}
	return at.Sub(began), c.Finish(ctx, got)
}
