package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
)

// attempt is a task that runs here.
type attempt struct {
	token    delaytask.Token
	tag      string
	ttr      time.Duration
	end      context.CancelCauseFunc
	free     func() // gives its slot to another task
	returned atomic.Bool

	// Guarded by the leases.
	until      time.Time // the lease holds for certain until then
	renewAt    time.Time
	renewUntil time.Time // when renewals end: the attempt has outlived its timeout and grace; zero: never
	touching   bool
}

// freeSlotLater gives the slot of a processor that does not return to another task, after a while.
func (a *attempt) freeSlotLater(s *service) {
	time.AfterFunc(s.grace, func() {
		if a.returned.Load() {
			return
		}
		s.log.Error("a processor goes on although its context has ended; its slot is given to another task",
			"task", a.token.ID, "tag", a.tag)
		a.free()
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
