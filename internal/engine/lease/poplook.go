package lease

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
)

// look is a pop's question to the table. While no caller takes rows of a tag here, rows fall due that this process does
// not know of.
type look struct {
	tags  []string
	rows  int  // how many the pop takes; 0 while it waits, because the run queue knows how many are wanted then
	fresh bool // the tags were not served here before, so what falls due soon is not armed

	done  chan struct{} // closed when the answer is there
	found bool          // something is due
	err   error
}

const (
	lookRows = 1000 // most rows that one look reads
	lookTags = 64   // most tags of one look
	// lookBeyond is longer than what one process saves as due now lies ahead of another's clock.
	lookBeyond = 10 * time.Millisecond
)

// ask sends the question.
func (p *pops) ask(l *look) *look {
	l.done = make(chan struct{})
	if err := p.looks.Add(l); err != nil {
		l.err = err
		close(l.done)
	}
	return l
}

// lookFor answers the questions with one read. A waiting pop needs no read when another one has looked while it waited.
func (p *pops) lookFor(asked []*look) {
	var tags, waited, fresh []string
	rows := 0
	for _, l := range asked {
		if l.rows > 0 {
			tags, rows = append(tags, l.tags...), rows+l.rows
		} else {
			waited = append(waited, l.tags...)
		}
		if l.fresh {
			fresh = append(fresh, l.tags...)
		}
	}
	unknown, wanted := p.runqueue.Pops.Unlooked(row.Distinct(waited))
	ctx, cancel := p.CallIn(p.finders)
	defer cancel()
	rows = min(rows+wanted, lookRows)
	page, err := p.lookAt(ctx, row.Distinct(append(tags, unknown...)), rows)
	if err == nil && len(page) < rows {
		p.runqueue.Pops.Looked(unknown)
	}
	for _, l := range asked {
		l.err = err
		l.found = slices.ContainsFunc(page, func(d row.Due) bool {
			return !d.Due.IsZero() && slices.Contains(l.tags, d.Tag)
		})
		close(l.done)
	}
	if err == nil && len(fresh) > 0 {
		if _, err := p.arm.ReadWindow(ctx, row.Distinct(fresh)); err != nil {
			p.Failed("looking ahead for a pop", err)
		}
	}
}

// lookAt offers what is due of the tags to the claimer, and returns it.
func (p *pops) lookAt(ctx context.Context, tags []string, rows int) ([]row.Due, error) {
	tags, _ = batch.Split(tags, p.arm.Tags.Open)
	if len(tags) == 0 {
		return nil, nil
	}
	if _, err := p.Certain(ctx); err != nil {
		return nil, err
	}
	now, _ := p.Bounds.AtMost() // a save without a delay is due at this bound
	page, err := p.Due(ctx, row.Window{Tags: tags, To: now.Add(lookBeyond), Limit: rows})
	if err != nil {
		p.Failed("looking for tasks to pop", err)
		return nil, err
	}
	due, later := batch.Split(page, func(d row.Due) bool { return d.Due <= now })
	p.runqueue.AddDue(due, false, now)
	for _, d := range later {
		p.runqueue.Arm(d, true)
	}
	return due, nil
}

func (p *pops) lookPanicked(asked []*look, value any) {
	p.Log.Error("looking for tasks to pop panicked", "panic", value, "stack", string(debug.Stack()))
	for _, l := range asked {
		select {
		case <-l.done:
		default:
			l.err = fmt.Errorf("looking for tasks to pop panicked: %v", value)
			close(l.done)
		}
	}
}
