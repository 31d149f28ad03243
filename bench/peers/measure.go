package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// figures are what one measurement found, by the keys of the report. A measurement that a system cannot take part in
// leaves its keys out.
type figures map[string]float64

// measurement takes figures of a system by its queue, which is empty.
type measurement struct {
	name string
	take func(ctx context.Context, r *run, q queue) (figures, error)
}

var measurements = []measurement{
	{"save", saves}, {"bulk", bulk}, {"drain", drain},
	{"late.500", latenessAt(500)}, {"late.2000", latenessAt(2000)},
	{"short", shortDelays}, {"now", startsNow}, {"other", fromElsewhere}, {"crash", crash},
}

// run is one measurement of one system.
type run struct {
	system   system
	dsn      string
	length   time.Duration // of what is measured by time
	lead     time.Duration // for saving what is due later
	backlog  int           // tasks to drain
	patience time.Duration // for the tasks of a worker that has crashed
}

const callers = 64

// each calls f from n goroutines for the length, after a warm-up, and returns what the calls took.
func (r *run) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) ([]time.Duration, error) {
	var next atomic.Int64
	op := func(ctx context.Context) (int, error) { return 1, f(ctx, int(next.Add(1))) }
	if _, err := bench.Hammer(ctx, n, r.length/6, op); err != nil {
		return nil, err
	}
	done, err := bench.Hammer(ctx, n, r.length, op)
	return done.Calls, err
}

// add adds percentiles of durations in milliseconds: p50, p99, max.
func (f figures) add(name string, durations []time.Duration, ends ...string) {
	for _, end := range ends {
		of := map[string]float64{"earliest": 0, "p50": 50, "p99": 99, "max": 100}[end]
		f[name+"."+end] = bench.Milliseconds(lateness.Percentile(durations, of))
	}
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// saves has 64 goroutines that save one task at a time.
func saves(ctx context.Context, r *run, q queue) (figures, error) {
	due := tomorrow()
	took, err := r.each(ctx, callers, func(ctx context.Context, i int) error { return q.save(ctx, newTask(i, due)) })
	found := figures{"saves": float64(len(took)) / r.length.Seconds()}
	found.add("save", took, "p50", "p99")
	return found, err
}

// bulk has 4 goroutines that save 1,000 tasks at a time.
func bulk(ctx context.Context, r *run, q queue) (figures, error) {
	const many = 1000
	due := tomorrow()
	took, err := r.each(ctx, 4, func(ctx context.Context, i int) error {
		tasks := make([]task, many)
		for k := range tasks {
			tasks[k] = newTask(i*many+k, due)
		}
		return q.saveMany(ctx, tasks)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return figures{"bulk": float64(len(took)) * many / r.length.Seconds()}, err
}

// fill stores tasks, by the system's bulk call or else by 64 goroutines.
func fill(ctx context.Context, q queue, tasks []task) error {
	const many = 1000
	for i := 0; i < len(tasks); i += many {
		err := q.saveMany(ctx, tasks[i:min(i+many, len(tasks))])
		if errors.Is(err, errors.ErrUnsupported) {
			return fillEach(ctx, q, tasks[i:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fillEach(ctx context.Context, q queue, tasks []task) error {
	var next atomic.Int64
	_, err := bench.Hammer(ctx, callers, 1<<62, func(ctx context.Context) (int, error) {
		i := int(next.Add(1)) - 1
		if i >= len(tasks) {
			return 0, nil
		}
		return 1, q.save(ctx, tasks[i])
	})
	return err
}

// drain runs a backlog: from the start of the worker until the last task is completed as stored.
func drain(ctx context.Context, r *run, q queue) (figures, error) {
	tasks := make([]task, r.backlog)
	for i := range tasks {
		tasks[i] = newTask(i, time.Time{})
	}
	if err := fill(ctx, q, tasks); err != nil {
		return nil, err
	}
	worker, err := r.system.open(ctx, r.dsn) // which has only the stored tasks
	if err != nil {
		return nil, err
	}
	defer worker.close()
	s := newStarts(len(tasks))
	begun := time.Now()
	if err := worker.work(ctx, s.ran); err != nil {
		return nil, err
	}
	if err := s.Wait(ctx, 3*time.Minute); err != nil {
		return nil, err
	}
	for {
		n, err := q.unfinished(ctx)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return figures{"drain": float64(len(tasks)) / time.Since(begun).Seconds()}, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// starts notes when tasks began first, by their numbers.
type starts struct{ *lateness.Starts }

func newStarts(n int) starts { return starts{lateness.NewStarts(n)} }

func (s starts) ran(_ context.Context, t task) error {
	s.Add(int64(t.N), time.Now())
	return nil
}

// late returns how late the tasks began, and how many of them began before they were due.
func (s starts) late(due []time.Time) (late []time.Duration, early int) {
	for i := range due {
		at, _ := s.First(int64(i))
		if at.Before(due[i]) {
			early++
		}
		late = append(late, at.Sub(due[i]))
	}
	return late, early
}

func lateFigures(name string, late []time.Duration, early int) figures {
	found := figures{name + ".early": float64(early) / float64(len(late)) * 100}
	found.add(name, late, "p50", "p99", "max", "earliest")
	return found
}

// latenessAt saves tasks that are due at random moments, so many a second on average. All are saved before the first
// one is due, by the process that runs them.
func latenessAt(rate int) func(context.Context, *run, queue) (figures, error) {
	return func(ctx context.Context, r *run, q queue) (figures, error) {
		length := 3 * r.length
		n := rate * int(length.Seconds())
		s := newStarts(n)
		if err := q.work(ctx, s.ran); err != nil {
			return nil, err
		}
		first := time.Now().Add(r.lead)
		tasks, due := make([]task, n), make([]time.Time, n)
		for i := range tasks {
			due[i] = first.Add(rand.N(length))
			tasks[i] = newTask(i, due[i])
		}
		if err := fill(ctx, q, tasks); err != nil {
			return nil, err
		}
		if left := time.Until(first); left < time.Second {
			return nil, fmt.Errorf("saving %d tasks took until %v before the first was due", n, left)
		}
		if err := s.Wait(ctx, time.Minute+length); err != nil {
			return nil, err
		}
		late, early := s.late(due)
		return lateFigures(fmt.Sprintf("late.%d", rate), late, early), nil
	}
}

// paced saves a task every 5 ms: 200 a second. It returns how late they started, in this process or elsewhere.
func (r *run) paced(
	ctx context.Context, q queue, elsewhere bool, delay func() time.Duration,
) (late []time.Duration, early int, err error) {
	n := 200 * int(2*r.length.Seconds())
	s, due, errs := newStarts(n), make([]time.Time, n), make([]error, n)
	if elsewhere {
		end, err := r.workElsewhere(ctx, s)
		if err != nil {
			return nil, 0, err
		}
		defer func() { err = errors.Join(err, end()) }()
	} else if err := q.work(ctx, s.ran); err != nil {
		return nil, 0, err
	}
	time.Sleep(3 * time.Second) // until the workers have settled down
	var all sync.WaitGroup
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for i := range n {
		<-ticker.C
		wait := delay()
		due[i] = time.Now().Add(wait)
		t := newTask(i, time.Time{})
		if wait > 0 {
			t.Due = due[i]
		}
		all.Go(func() { errs[i] = q.save(ctx, t) })
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, 0, err
	}
	if err := s.Wait(ctx, time.Minute); err != nil {
		return nil, 0, err
	}
	late, early = s.late(due)
	return late, early, nil
}

// shortDelays saves tasks that are due in less than 5 s.
func shortDelays(ctx context.Context, r *run, q queue) (figures, error) {
	late, early, err := r.paced(ctx, q, false, func() time.Duration { return time.Millisecond + rand.N(5*time.Second) })
	if err != nil {
		return nil, err
	}
	return lateFigures("short", late, early), nil
}

// startsNow saves tasks without a delay. What counts is from the call of save to the start.
func startsNow(ctx context.Context, r *run, q queue) (figures, error) {
	took, _, err := r.paced(ctx, q, false, func() time.Duration { return 0 })
	found := figures{}
	found.add("now", took, "p50", "p99")
	return found, err
}

// fromElsewhere is startsNow and shortDelays for tasks that another process runs.
func fromElsewhere(ctx context.Context, r *run, q queue) (figures, error) {
	if r.system.alone {
		return nil, nil
	}
	took, _, err := r.paced(ctx, q, true, func() time.Duration { return 0 })
	if err != nil {
		return nil, err
	}
	late, early, err := r.paced(ctx, q, true, func() time.Duration { return time.Millisecond + rand.N(2*time.Second) })
	if err != nil {
		return nil, err
	}
	found := lateFigures("other.short", late, early)
	found.add("other.now", took, "p50", "p99")
	return found, nil
}
