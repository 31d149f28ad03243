// Package faultstore makes a store fail on purpose: before a call, after it, or by hanging. A test that runs a scenario
// with the n-th call failing, for n = 1, 2, 3 … until [Store.Faults] returns 0, has seen every call fail.
//
// Over a [Link] calls also take their time, and the link may be cut, held and ended.
//
// A store waits only for the caller's context. It starts no goroutine but the timer's that makes a late call and, over
// a link, those that continue a call without its caller. So it works in a testing/synctest bubble.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

var _ store.Store = (*Store)(nil)

// LateBy is how long after the end of the caller's wait a call of the mode [Late] is made.
const LateBy = 50 * time.Millisecond

var errFault = errors.New("fault on purpose")

// Store passes calls on to another store, as far as its plans let it. Make one with [New].
type Store struct {
	inner store.Store
	plans []Plan
	late  sync.WaitGroup // calls that are still to be made
	link  *Link          // nil: none

	mu     sync.Mutex
	calls  map[string]int // by method
	total  int
	faults int
	cut    int // calls without a fault that took longer than their callers waited
}

// New wraps a store. Of several plans the first one that does not let a call pass decides.
func New(inner store.Store, plans ...Plan) *Store {
	return &Store{inner: inner, plans: plans, calls: make(map[string]int)}
}

// Over makes the calls go over a link, and returns the store. It must be called before any other method.
func (s *Store) Over(l *Link) *Store {
	s.link = l
	return s
}

func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func (s *Store) CallsOf(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Faults returns how many calls a plan did not let pass.
func (s *Store) Faults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Cut returns how many calls that the plans let pass were not done at their deadline. A test in real time checks it,
// because a slow machine adds faults of its own.
func (s *Store) Cut() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Wait returns when every call of the mode [Late] whose caller has given up has been made.
func (s *Store) Wait() { s.late.Wait() }

func (s *Store) treat(method string) (Call, Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	s.calls[method]++
	call := Call{Method: method, N: s.total, OfKind: s.calls[method]}
	for _, plan := range s.plans {
		if mode := plan(call); mode != Pass {
			s.faults++
			return call, mode
		}
	}
	return call, Pass
}

// call does what the plans want with one call. The answer of a call that failed on purpose is empty.
func call[T any](ctx context.Context, s *Store, method string, do func(context.Context) (T, error)) (T, error) {
	var none T
	this, mode := s.treat(method)
	if s.link != nil {
		return over(ctx, s.link, this, mode, do)
	}
	switch mode {
	case Before:
		return none, fault(row.ClassNotApplied, method, errFault)
	case After:
		_, err := do(ctx)
		return none, fault(row.ClassUnknown, method, errors.Join(errFault, err))
	case Hang:
		<-ctx.Done()
		return none, fault(row.ClassUnknown, method, ctx.Err())
	case Late:
		s.late.Add(1)
		<-ctx.Done()
		time.AfterFunc(LateBy, func() {
			defer s.late.Done()
			_, _ = do(context.WithoutCancel(ctx))
		})
		return none, fault(row.ClassUnknown, method, ctx.Err())
	case Twice:
		_, _ = do(ctx)
		return do(ctx)
	default:
		answer, err := do(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.mu.Lock()
			s.cut++
			s.mu.Unlock()
		}
		return answer, err
	}
}

func fault(class row.Class, method string, err error) error {
	return &row.Error{Class: class, Op: fmt.Sprintf("call %s", method), Err: err}
}

// Call is one call of the store, before it is made.
type Call struct {
	Method string // as in store.Store: "Insert", "Claim", …
	N      int    // 1 for the first call of any method
	OfKind int    // 1 for the first call of this method
}

// Mode is what becomes of a call.
type Mode int

const (
	// Pass makes the call as it is.
	Pass Mode = iota
	// Before does not make the call and answers row.ClassNotApplied.
	Before
	// After makes the call and loses the reply: row.ClassUnknown.
	After
	// Hang never makes the call, waits until the caller's context ends, and answers row.ClassUnknown.
	Hang
	// Late answers as Hang does, and makes the call [LateBy] after the caller has given up.
	Late
	// Twice makes the call twice and answers what the second one met: a request that was sent again although it had
	// arrived.
	Twice
)

func (m Mode) String() string {
	return [...]string{"pass", "before", "after", "hang", "late", "twice"}[m]
}

// Modes are all ways to fail, for tests that try every one of them.
var Modes = []Mode{Before, After, Hang, Late, Twice}

// Plan decides what becomes of a call. It may be asked from many goroutines, by one at a time.
type Plan func(Call) Mode

// Nth treats the n-th call of any method.
func Nth(n int, mode Mode) Plan {
	return func(c Call) Mode {
		if c.N == n {
			return mode
		}
		return Pass
	}
}

// Method treats the n-th call of the method; n = 0 stands for every call.
func Method(name string, n int, mode Mode) Plan {
	return func(c Call) Mode {
		if c.Method == name && (n == 0 || c.OfKind == n) {
			return mode
		}
		return Pass
	}
}
