package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// mostPolled bounds what one poll takes, so that an answer stays of a size that is soon read.
const mostPolled = 100

// poller takes tasks of some tags by long polls, as many as it has free slots, and runs them.
type poller struct {
	runner *runner
	ctx    context.Context // of all polls
	free   chan struct{}   // holds what is free

	mu      sync.Mutex
	leases  map[string]time.Duration // of its tags
	changed context.CancelFunc       // ends the poll in flight, because the tags have changed
	runs    bool
}

func newPoller(ctx context.Context, r *runner, slots int) *poller {
	p := &poller{
		runner: r, ctx: ctx, free: make(chan struct{}, slots), leases: map[string]time.Duration{}, changed: func() {},
	}
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
	ctx, changed := context.WithCancel(p.ctx)
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
		tasks, err := p.poll(ctx, &pop)
		cancel()
		got := time.Now()
		for _, t := range tasks {
			p.runner.running.Go(func() { p.runner.work(t, got.Add(pop.TTR), func() { p.put(1) }) })
		}
		p.put(slots - len(tasks))
		if err == nil {
			failures = 0
			continue
		}
		failures++
		p.runner.service.log.Warn("tasks could not be taken from the service", "err", err)
		if !sleep(p.ctx, refusedPolls(failures)) {
			return
		}
	}
}

// take waits until a slot is free and takes all free ones. It returns 0 when the worker stops.
func (p *poller) take() (n int) {
	select {
	case <-p.free:
	case <-p.ctx.Done():
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
func (p *poller) poll(ctx context.Context, pop *delaytask.Pop) ([]*delaytask.Task, error) {
	r, reply := popRequest(pop, pollWait)
	err := p.runner.service.try(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	tasks, err := handedOut(reply)
	if p.ctx.Err() != nil || len(tasks) > pop.Max {
		p.runner.giveBack(tasks)
		return nil, err
	}
	return tasks, err
}

func popRequest(p *delaytask.Pop, wait time.Duration) (*httpCall, *wire.PopReply) {
	q := url.Values{"tag": p.Tags, "max": {strconv.Itoa(p.Max)}, "wait": {wire.FormatDuration(wait)}}
	if p.TTR > 0 {
		q.Set("ttr", wire.FormatDuration(p.TTR))
	}
	reply := &wire.PopReply{}
	return &httpCall{
		method: http.MethodPost, path: "/v1/pop?" + q.Encode(), into: reply, limit: tasks(p.Max), wait: wait,
		again: true,
	}, reply
}

// handedOut returns the tasks of the answer.
func handedOut(reply *wire.PopReply) (all []*delaytask.Task, err error) {
	for i := range reply.Tasks {
		task, err := reply.Tasks[i].To()
		if err != nil {
			return nil, errors.New("the service handed out a task without its token")
		}
		all = append(all, &task)
	}
	return all, nil
}
