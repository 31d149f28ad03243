package table

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/store"
)

// Apart sends the rows of a writer that must travel apart from others, group by group, on connections of their own.
type Apart[T any] struct {
	*Table
	ApartConfig[T]

	mu     sync.Mutex     // guards what follows; only the lock of the ranges is taken while it is held
	queues map[string][]T // what each group has to send; while it has an entry, run sends for it
}

// ApartConfig says what a writer sends apart. Every field is set.
type ApartConfig[T any] struct {
	// Groups returns what a row may wait for: its keys before its tags.
	Groups func(T) []string

	// Write sends rows once, and returns those that have to be sent again. It passes on to locked the rows of a
	// statement that has met a lock.
	Write func(ctx context.Context, rows []T, locked func([]T) (again []T)) (again []T)

	// LeaveOut takes care of the rows that another transaction holds, and returns the others.
	LeaveOut func(ctx context.Context, rows []T) (rest []T)

	Size              func(*T) int // bytes that a row takes in a statement
	MaxRows, MaxBytes int          // of a statement
}

// NewApart makes what sends rows of a writer apart.
func NewApart[T any](t *Table, cfg ApartConfig[T]) *Apart[T] {
	return &Apart[T]{Table: t, ApartConfig: cfg, queues: map[string][]T{}}
}

// Send sends rows once, and returns those that the writer has to send again. It keeps those that travel apart. When the
// statement meets a lock which none of the rows has, these are all: each group finds out by itself whether it waits.
func (a *Apart[T]) Send(rows []T) (again []T) {
	if rows = a.take(rows); len(rows) == 0 {
		return nil
	}
	ctx, cancel := a.Call()
	defer cancel()
	return a.Write(ctx, rows, func(rows []T) []T {
		if rest := a.LeaveOut(ctx, rows); len(rest) < len(rows) {
			return rest
		}
		a.Locks.Note()
		if !a.mayBeRange() {
			return rows
		}
		for _, r := range rows {
			a.Ranges.MayWait(a.Groups(r)...)
		}
		a.add("", rows)
		return nil
	})
}

// take takes the rows that travel apart out of a batch.
func (a *Apart[T]) take(rows []T) (rest []T) {
	if a.Ranges.None() {
		return rows
	}
	apart, rest := batch.Split(rows, func(r T) bool { return a.Ranges.first(a.Groups(r)) != "" })
	a.add("", apart)
	return rest
}

// add queues rows in their groups. Rows whose group is not locked any more stay in the given one.
func (a *Apart[T]) add(stay string, rows []T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range rows {
		groups := a.Groups(r)
		group := a.Ranges.first(groups)
		switch {
		case group != "":
		case stay != "":
			group = stay
		case len(groups) > 0:
			group = groups[0]
		}
		if _, runs := a.queues[group]; !runs {
			a.Go(func() { a.run(group) })
		}
		a.queues[group] = append(a.queues[group], r)
	}
}

// next takes rows for the next statement. It takes no rows when the queue has ended.
func (a *Apart[T]) next(group string, width int) (rows []T, left int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	queue := a.queues[group]
	if len(queue) == 0 {
		delete(a.queues, group)
		return nil, 0
	}
	rows = batch.Pages(queue, width, a.MaxBytes, a.Size)[0]
	a.queues[group] = queue[len(rows):]
	return rows, len(queue) - len(rows)
}

// run sends what a group has. Rows that wait for the lock go to the end of the queue, so that each has its turn.
func (a *Apart[T]) run(group string) {
	t, waited := turn{rows: a.MaxRows}, 0
	for {
		rows, left := a.next(group, t.rows)
		if len(rows) == 0 {
			return
		}
		sent, again, locked := a.try(rows, t.tries > 0)
		if a.Life.Err() != nil {
			again = nil // what is not written by now stays as it is
		}
		switch {
		case locked:
			a.locked(group, rows, sent)
			t.locked(len(rows))
			if waited += len(rows); waited > left { // all that the group has
				waited = 0
				lifecycle.Sleep(a.Life, t.pause())
			}
		default:
			a.Ranges.Passed(group)
			t.passed(a.MaxRows)
			waited = 0
			if len(again) > 0 {
				lifecycle.Sleep(a.Life, lifecycle.Backoff(0))
			}
		}
		a.add(group, again)
	}
}

func (a *Apart[T]) try(rows []T, slow bool) (sent time.Time, again []T, locked bool) {
	if slow {
		a.Ranges.slow <- struct{}{}
		defer func() { <-a.Ranges.slow }()
	}
	ctx, cancel := a.Call()
	defer cancel()
	ctx = store.Apart(ctx)
	sent = time.Now()
	again = a.Write(ctx, rows, func(rows []T) []T {
		rest := a.LeaveOut(ctx, rows)
		locked = len(rest) == len(rows)
		return rest
	})
	return sent, again, locked
}

// locked notes that a statement of the group has met the lock. Rows with keys may have met the lock of a key: each is
// sent by itself next, so that it can tell.
func (a *Apart[T]) locked(group string, rows []T, sent time.Time) {
	a.Locks.Note()
	keyed := false
	for _, r := range rows {
		if groups := a.Groups(r); groups[0] != group {
			a.Ranges.MayWaitAlone(groups...)
			keyed = true
		}
	}
	if !keyed {
		a.TellRange(group, sent)
	}
}

// apartPause is the longest pause between two tries of a tag whose rows all wait.
const apartPause = 2 * time.Second

// turn is how a group is sent apart: half as many rows after each lock, and after a pause.
type turn struct {
	rows  int // of the next statement
	tries int // that have met a lock, in a row
}

func (t *turn) locked(rows int) {
	t.rows = max(rows/2, 1)
	t.tries++
}

func (t *turn) passed(most int) { t.rows, t.tries = min(2*t.rows, most), 0 }

// pause is 0 for a group that waits for no lock.
func (t *turn) pause() time.Duration {
	if t.tries == 0 {
		return 0
	}
	return min(LockBackoff(t.tries), apartPause)
}

// Turns lets a writer whose rows wait elsewhere send them apart: of each tag one statement at a time, and of all tags
// that have met a lock one.
type Turns struct {
	most int // rows of a statement

	mu     sync.Mutex // innermost
	tags   map[string]*tagTurn
	trying string // the tag whose turn began after it had met a lock, or ""
}

type tagTurn struct {
	turn
	taken bool
	until time.Time // no statement is sent before
	after []func()  // called when the turn is given back
}

// NewTurns returns turns of statements with at most so many rows.
func NewTurns(most int) *Turns { return &Turns{most: most, tags: map[string]*tagTurn{}} }

// Begin takes the turn of a tag with so many rows. It returns how many of them may be sent, and how long the others
// wait. Unless it returns 0 rows, End gives the turn back.
func (a *Turns) Begin(tag string, have int) (rows int, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of(tag)
	if wait = time.Until(t.until); wait > 0 {
		return 0, wait
	}
	if t.taken || t.tries > 0 && a.trying != "" {
		return 0, t.pause()
	}
	if t.taken = true; t.tries > 0 {
		a.trying = tag
	}
	return min(t.rows, have), t.pause()
}

func (a *Turns) of(tag string) *tagTurn {
	t := a.tags[tag]
	if t == nil {
		t = &tagTurn{turn: turn{rows: a.most}}
		a.tags[tag] = t
	}
	return t
}

// After calls do when the turn of the tag is given back, or now where it is free.
func (a *Turns) After(tag string, do func()) {
	if !a.queue(tag, do) {
		do()
	}
}

func (a *Turns) queue(tag string, do func()) (queued bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tags[tag]
	if t == nil || !t.taken {
		return false
	}
	t.after = append(t.after, do)
	return true
}

// End gives the turn of a tag back.
func (a *Turns) End(tag string) {
	for _, do := range a.giveBack(tag) {
		do()
	}
}

func (a *Turns) giveBack(tag string) (after []func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trying == tag {
		a.trying = ""
	}
	t := a.tags[tag]
	after, t.after = t.after, nil
	if t.rows < a.most || t.tries > 0 {
		t.taken = false
	} else {
		delete(a.tags, tag)
	}
	return after
}

// Locked notes that the statement, which had so many rows, has met a lock.
func (a *Turns) Locked(tag string, rows int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of(tag)
	t.locked(rows)
	t.until = time.Now().Add(t.pause())
}

// Passed notes that the statement has met no lock.
func (a *Turns) Passed(tag string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(tag).passed(a.most)
}
