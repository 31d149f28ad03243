package engine

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// ending is the end of a task that was handed out, as its holder asks for it.
type ending struct {
	id, version int64
	decide      func(*attempt, *processor.Registration, row.Time) settlement

	row    *row.Row   // as it was read, while the version holds it
	result settlement // what was sent last
	unsure bool       // result was sent without a reply, so it may be applied
	again  bool       // the first try has not answered
	err    error      // the answer, or what the last try met
}

// endCall are the ends that one caller asks for at once.
type endCall struct {
	ends []*ending
	done chan struct{} // closed after the first try
}

func (c *endCall) size() int { return len(c.ends) }

// newEndings brings ends that are asked for at the same time into one statement. What that does not settle its caller
// tries again alone, so a locked or refused row holds up no other.
func (p *pops) newEndings() *batch.Coalescer[*endCall] {
	return batch.New(batch.Config[*endCall]{
		Flush: p.endBatch, Panicked: p.endPanicked, Flushers: 2, MaxBytes: settleRows, Size: (*endCall).size,
	})
}

func (p *pops) endBatch(calls []*endCall) {
	var all []*ending
	for _, c := range calls {
		all = append(all, c.ends...)
	}
	p.Metrics.Batch("end", len(all))
	ctx, cancel := p.Call()
	defer cancel()
	for _, e := range p.tryEnd(ctx, all) {
		e.again = true
	}
	for _, c := range calls {
		close(c.done)
	}
}

// endPanicked lets each caller try alone.
func (p *pops) endPanicked(calls []*endCall, value any) {
	p.Log.Error("ending popped tasks panicked", "panic", value, "stack", string(debug.Stack()))
	for _, c := range calls {
		for _, e := range c.ends {
			e.again = true
		}
		close(c.done)
	}
}

// end settles a task that was handed out.
func (p *pops) end(ctx context.Context, e *ending) error { return p.endPage(ctx, []*ending{e})[0] }

// endPage settles up to settleRows tasks that were handed out, together with those of other callers. It returns an
// answer for each.
func (p *pops) endPage(ctx context.Context, page []*ending) []error {
	answers := make([]error, len(page))
	fill := func(err error) []error {
		for i := range answers {
			answers[i] = err
		}
		return answers
	}
	c := &endCall{ends: page, done: make(chan struct{})}
	if err := p.endings.Add(c); err != nil {
		return fill(processor.ErrClosed)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return fill(context.Cause(ctx))
	}
	again, _ := batch.Split(page, func(e *ending) bool { return e.again })
	p.retryEnds(ctx, again)
	for i, e := range page {
		answers[i] = e.err
	}
	return answers
}

// retryEnds tries again until every ending has its answer in err, or ctx has ended.
func (p *pops) retryEnds(ctx context.Context, open []*ending) {
	for n := 1; len(open) > 0 && n < controlTries && lifecycle.Sleep(ctx, lifecycle.Backoff(n)); n++ {
		open = p.tryEnd(ctx, open)
	}
	for _, e := range open {
		switch cause := context.Cause(ctx); {
		case cause != nil && e.unsure:
			e.err = fmt.Errorf("%w: whether the task was ended is not known: %w", cause, e.err)
		case cause != nil:
			e.err = cause
		case e.err == nil:
			e.err = processor.ErrContended
		}
	}
}
