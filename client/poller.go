package client

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

const (
	// mostPolled bounds what one poll takes, so that an answer stays of a size that is soon read.
	mostPolled = 100
	// giveBackWait is how long a stop waits for the answers to what it gives back.
	giveBackWait = 5 * time.Second
)

// poller takes tasks of some tags by long polls, as many as it has free slots, and runs them.
type poller struct {
	w    *worker
	free chan struct{} // holds what is free

	mu      sync.Mutex
	leases  map[string]time.Duration // of its tags
	changed context.CancelFunc       // ends the poll in flight, because the tags have changed
	runs    bool
}

func newPoller(w *worker, slots int) *poller {
	p := &poller{w: w, free: make(chan struct{}, slots), leases: map[string]time.Duration{}, changed: func() {}}
	for range slots {
		p.free <- struct{}{}
	}
	return p
}

// add polls for the tag too, and reports whether run must be called.
func (p *poller) add(tag string, lease time.Duration) (rests bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases[tag] = lease
	p.changed()
	rests, p.runs = !p.runs, true
	return rests
}

// remove ends polling for the tag.
func (p *poller) remove(tag string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, tag)
	p.changed()
}

// next returns the next poll, and a context that ends when the tags change. Without tags run must end.
func (p *poller) next(slots int) (delaytask.Pop, context.Context, context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pop := delaytask.Pop{Max: slots}
	p.runs = len(p.leases) > 0
	for tag, lease := range p.leases {
		pop.Tags, pop.TTR = append(pop.Tags, tag), max(pop.TTR, lease)
	}
	ctx, changed := context.WithCancel(p.w.polls)
	p.changed = changed
	return pop, ctx, changed
}

// refusedPolls is the backoff of polls that get no answer.
var refusedPolls = processor.Exponential(100*time.Millisecond, 10*time.Second, 0.5)

func (p *poller) run() {
	failures := 0
	for {
		slots := p.take()
		if slots == 0 {
			return
		}
		pop, ctx, cancel := p.next(slots)
		if len(pop.Tags) == 0 {
			cancel()
			p.put(slots)
			return
		}
		popped, err := p.poll(ctx, &pop)
		cancel()
		got := time.Now()
		for _, t := range popped {
			p.w.running.Go(func() { p.w.work(p, t, got.Add(pop.TTR)) })
		}
		p.put(slots - len(popped))
		if err == nil {
			failures = 0
			continue
		}
		failures++
		p.w.client.log.Warn("tasks could not be taken from the service", "err", err)
		if !sleep(p.w.polls, refusedPolls(failures)) {
			return
		}
	}
}

// take waits until a slot is free and takes all free ones. It returns 0 when the worker stops.
func (p *poller) take() (n int) {
	select {
	case <-p.free:
	case <-p.w.polls.Done():
		return 0
	}
	for n = 1; n < mostPolled; n++ {
		select {
		case <-p.free:
		default:
			return n
		}
	}
	return n
}

func (p *poller) put(n int) {
	for range n {
		p.free <- struct{}{}
	}
}

// poll waits for tasks. Tasks that arrive while the worker stops are given back.
func (p *poller) poll(ctx context.Context, pop *delaytask.Pop) ([]*delaytask.Popped, error) {
	r, reply := popRequest(pop, pollWait)
	err := p.w.client.try(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	popped, err := p.w.client.popped(reply)
	if p.w.polls.Err() != nil || len(popped) > pop.Max {
		p.w.giveBack(popped)
		return nil, err
	}
	return popped, err
}

// giveBack releases tasks that were not begun.
func (w *worker) giveBack(popped []*delaytask.Popped) {
	ctx, cancel := context.WithTimeout(w.reports, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range popped {
		all.Go(func() { w.report(ctx, t.Token(), ending{op: opRelease}) })
	}
	all.Wait()
}
