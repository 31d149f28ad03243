package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	pullClients = 200
	pullMost    = 50
	pullWait    = 30 * time.Second
)

// httpPop measures tasks that become due at a rate, from their due times to the clients that wait for them.
func (o *options) httpPop(rate int) bench.Measurement {
	name := fmt.Sprintf("http.pop.%d", rate)
	return o.served(bench.Measurement{
		Name: name, Turns: 1,
		Figures: append(lateFigures(name, "from the due time until half of the tasks had been received"),
			bench.Figure{name + ".per_s",
				fmt.Sprintf("tasks that 200 clients get by long polls and finish, due at %d a second", rate)}),
	}, func(ctx context.Context, r *bench.Runner, d *bench.Database, c *client.Client) error {
		if err := d.SameClock(ctx); err != nil {
			return err
		}
		span := r.Lasting(bench.LateSpan)
		n := max(1, int(float64(rate)*span.Seconds()))
		begin, err := bench.SaveAhead(ctx, n, span, r.Ahead(), bench.SaverOf(c, bench.LateTag, bench.Body))
		if err != nil {
			return err
		}
		seen := lateness.NewStarts(n)
		last, err := pull(ctx, c, seen, time.Until(begin)+span+bench.RunLimit)
		if err != nil {
			return err
		}
		r.Add(name+".per_s", float64(n)/last.Sub(begin).Seconds())
		return judge(ctx, r, d, bench.LateTag, name, seen)
	})
}

// pull has clients take tasks by long polls and finish them, each one poll after the other, until seen has all or the
// limit is over: the table shows what is missing. It returns when the last task was finished.
func pull(
	ctx context.Context, c *client.Client, seen *lateness.Starts, limit time.Duration,
) (last time.Time, err error) {
	var mu sync.Mutex
	err = polling(ctx, c, bench.LateTag, pullClients, pullMost, func(tasks []*delaytask.Popped) error {
		at := time.Now()
		tokens := make([]delaytask.Token, len(tasks))
		for i, t := range tasks {
			seen.Add(t.ID, at)
			tokens[i] = t.Token()
		}
		_, err := c.FinishAll(ctx, tokens)
		mu.Lock()
		defer mu.Unlock()
		last = time.Now()
		return err
	}, func(ctx context.Context) error {
		_ = seen.Wait(ctx, limit) // what has not come is judged
		return context.Cause(ctx)
	})
	return last, err
}

// polling lets clients poll for a tag, each one poll after the other, while f runs. The first error ends all.
func polling(
	ctx context.Context, c *client.Client, tag string, clients, most int, took func([]*delaytask.Popped) error,
	f func(context.Context) error,
) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	waiting, hangUp := context.WithCancel(ctx)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for waiting.Err() == nil {
				tasks, err := c.Pop(waiting, tag, delaytask.PopMax(most), delaytask.PopWait(pullWait))
				if len(tasks) > 0 {
					err = took(tasks)
				}
				if err != nil && (waiting.Err() == nil || len(tasks) > 0) {
					fail(err)
				}
			}
		})
	}
	if err := f(ctx); err != nil {
		fail(err)
	}
	hangUp()
	group.Wait()
	return context.Cause(ctx)
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

func (o *options) httpPoll() bench.Measurement {
	m := bench.Measurement{Name: "http.poll", Turns: 1}
	for _, k := range pollKinds {
		m.Figures = append(m.Figures,
			bench.Figure{"http.poll." + k.key + ".p50_ms", "until half of the long polls had " + k.about},
			bench.Figure{"http.poll." + k.key + ".p99_ms", "99 of 100 take at most"})
	}
	return o.served(m, func(ctx context.Context, r *bench.Runner, d *bench.Database, c *client.Client) error {
		if err := d.SameClock(ctx); err != nil {
			return err
		}
		took := make([][]time.Duration, len(pollKinds))
		for round := range max(1, int(r.Lasting(bench.LateSpan)/pollRound)) {
			for i, k := range pollKinds { // in turns, so that each meets the same machine
				late, err := pollFor(ctx, c, k.tag(round), time.Now().Add(k.delay), k.before)
				if err != nil {
					return err
				}
				took[i] = append(took[i], late)
			}
		}
		for i, k := range pollKinds {
			r.AddPercentiles("http.poll."+k.key, took[i], "p50_ms", "p99_ms")
		}
		return nil
	})
}

// pollFor saves a task and polls for it. It returns the time from the later of the poll's begin and the due time until
// the answer.
func pollFor(
	ctx context.Context, c *client.Client, tag string, due time.Time, before bool,
) (time.Duration, error) {
	saved := make(chan error, 1)
	save := func() { saved <- bench.SaverOf(c, tag, bench.Body)(ctx, []time.Time{due}) }
	if before {
		save()
	} else {
		go save()
	}
	began := time.Now()
	got, err := c.Pop(ctx, tag, delaytask.PopWait(pullWait))
	at := time.Now()
	if err := errors.Join(<-saved, err); err != nil {
		return 0, fmt.Errorf("save a task and poll for it: %w", err)
	}
	if len(got) != 1 {
		return 0, fmt.Errorf("a long poll brought %d tasks", len(got))
	}
	return at.Sub(slices.MaxFunc([]time.Time{began, due}, time.Time.Compare)), got[0].Finish(ctx)
}

func (o *options) httpIdle() bench.Measurement {
	return o.served(bench.Measurement{
		Name: "http.idle", Turns: 1,
		Figures: []bench.Figure{
			{"http.idle.queries_per_s", "statements of a service that nobody calls, as the server counts them"},
			{"http.idle.waiting_1.queries_per_s",
				"the same while one client waits in long polls and nothing is due"},
			{"http.idle.waiting_1000.queries_per_s", "the same while 1,000 clients wait"},
		},
	}, func(ctx context.Context, r *bench.Runner, d *bench.Database, c *client.Client) error {
		if d.Kind.Embedded() {
			return leftOut("SQLite does not count statements")
		}
		for key, clients := range map[string]int{"": 0, ".waiting_1": 1, ".waiting_1000": idleClients} {
			unexpected := func([]*delaytask.Popped) error { return errors.New("a task came, and none was saved") }
			err := polling(ctx, c, bench.LateTag, clients, 1, unexpected, func(ctx context.Context) error {
				perSecond, err := queriesPerSecond(ctx, r, d)
				r.Add("http.idle"+key+".queries_per_s", perSecond)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// queriesPerSecond counts all statements that the server gets, except its own. Clients have some seconds to connect,
// and their first effects to end.
func queriesPerSecond(ctx context.Context, r *bench.Runner, d *bench.Database) (perSecond float64, err error) {
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	questions := func() (n int64) {
		var name string
		if err == nil {
			err = pool.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
		}
		return n
	}
	if err := lateness.Pass(ctx, r.Lasting(5*time.Second)); err != nil {
		return 0, err
	}
	before, began := questions(), time.Now()
	if err := lateness.Pass(ctx, r.Lasting(time.Minute)); err != nil {
		return 0, err
	}
	return float64(questions()-before-1) / time.Since(began).Seconds(), err
}
