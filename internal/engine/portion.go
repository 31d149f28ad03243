package engine

import (
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/runqueue"
)

// portion is how many rows a claim may take. A large claim costs the database the least, as long as it is back well
// before the leases of its rows end. On a server that is slow for the moment all of it would be in vain and be claimed
// again, and the server slower yet: many processes may keep it busy that way for ever. So the portion is halved after a
// claim that took long, down to one row, and doubled after a full one that was quick.
type portion struct {
	less atomic.Int64 // rows fewer than runqueue.MaxClaim
}

// Of the shortest lease that it has won, a claim takes long that takes half, for the tasks have to find slots yet, and
// to run. One is quick that takes a quarter. Smaller parts would punish a long way to the database, which a small claim
// goes as slowly as a large one.
const (
	longPart  = 2
	quickPart = 4
)

func (p *portion) rows() int { return runqueue.MaxClaim - int(p.less.Load()) }

// took learns from a claim of so many rows.
func (p *portion) took(rows int, d, lease time.Duration) {
	switch {
	case d > lease/longPart:
		p.set(rows / 2)
	case d < lease/quickPart && rows >= p.rows():
		p.set(2 * rows)
	}
}

func (p *portion) set(rows int) {
	p.less.Store(int64(runqueue.MaxClaim - min(max(rows, 1), runqueue.MaxClaim)))
}
