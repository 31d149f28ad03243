package client

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/processor"
)

const (
	// mostPolled bounds what one poll takes, so that an answer stays of a size that is soon read.
	mostPolled = 100
	// giveBackWait is how long a stop waits for the answers to what it gives back.
	giveBackWait = 5 * time.Second
)

// line takes tasks of some tags, as many as it has free slots, and runs them.
type line struct {
	w    *worker
	free chan struct{} // holds what is free

	mu      sync.Mutex
	leases  map[string]time.Duration // of its tags
	changed context.CancelFunc       // ends the poll that is under way, because it is not about the tags of now
	runs    bool
}

func newLine(w *worker, slots int) *line {
	l := &line{w: w, free: make(chan struct{}, slots), leases: map[string]time.Duration{}, changed: func() {}}
	for range slots {
		l.free <- struct{}{}
	}
	return l
}

// add takes the tag in, and reports whether run must be called.
func (l *line) add(tag string, lease time.Duration) (rests bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[tag] = lease
	l.changed()
	rests, l.runs = !l.runs, true
	return rests
}

// remove takes no more tasks of the tag.
func (l *line) remove(tag string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, tag)
	l.changed()
}

// next is what the next poll asks for, and a context that ends when that changes. It asks for no tags when there are
// none left; run must end then.
func (l *line) next(slots int) (processor.Pop, context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pop := processor.Pop{Max: slots}
	l.runs = len(l.leases) > 0
	for tag, lease := range l.leases {
		pop.Tags, pop.TTR = append(pop.Tags, tag), max(pop.TTR, lease)
	}
	ctx, changed := context.WithCancel(l.w.polls)
	l.changed = changed
	return pop, ctx, changed
}

// refusedPolls spread polls that get no answer.
var refusedPolls = processor.Exponential(100*time.Millisecond, 10*time.Second, 0.5)

func (l *line) run() {
	failures := 0
	for {
		slots := l.take()
		if slots == 0 {
			return
		}
		pop, ctx, cancel := l.next(slots)
		if len(pop.Tags) == 0 {
			cancel()
			l.put(slots)
			return
		}
		popped, err := l.poll(ctx, &pop)
		cancel()
		got := time.Now()
		for _, p := range popped {
			l.w.running.Go(func() { l.w.work(l, p, got.Add(pop.TTR)) })
		}
		l.put(slots - len(popped))
		if err == nil {
			failures = 0
			continue
		}
		failures++
		l.w.log.Warn("tasks could not be taken from the service", "err", err)
		if !sleep(l.w.polls, refusedPolls(failures)) {
			return
		}
	}
}

// take waits until a slot is free and takes all that are. It returns 0 when the worker stops.
func (l *line) take() (n int) {
	select {
	case <-l.free:
	case <-l.w.polls.Done():
		return 0
	}
	for n = 1; n < mostPolled; n++ {
		select {
		case <-l.free:
		default:
			return n
		}
	}
	return n
}

func (l *line) put(n int) {
	for range n {
		l.free <- struct{}{}
	}
}

// poll waits for tasks. What arrives while the worker stops is given back: it was not begun.
func (l *line) poll(ctx context.Context, pop *processor.Pop) ([]*processor.Popped, error) {
	r, reply := popRequest(pop, pollWait)
	err := l.w.client.try(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	popped, err := l.w.client.popped(reply)
	if l.w.polls.Err() != nil || len(popped) > pop.Max {
		l.w.giveBack(popped)
		return nil, err
	}
	return popped, err
}

// giveBack releases tasks that were not begun.
func (w *worker) giveBack(popped []*processor.Popped) {
	ctx, cancel := context.WithTimeout(w.reports, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range popped {
		all.Go(func() { w.report(ctx, p.Token(), ending{op: opRelease}) })
	}
	all.Wait()
}
