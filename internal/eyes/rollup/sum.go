package rollup

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// sum adds up rollups.
type sum struct {
	completed, retried, failed, lost int64

	late  [row.LateClasses]int64
	max   time.Duration
	fresh bool // something was added since the sum was last written
}

func (s *sum) add(r *row.Rollup) {
	s.completed += r.Completed
	s.retried += r.Retried
	s.failed += r.Failed
	s.lost += r.Lost
	for _, c := range r.Late {
		s.late[c.Class] += c.N
	}
	s.max = max(s.max, r.Max)
	s.fresh = true
}

func (s *sum) rollup() row.Rollup {
	r := row.Rollup{Completed: s.completed, Retried: s.retried, Failed: s.failed, Lost: s.lost, Max: s.max}
	for class, n := range s.late {
		if n > 0 {
			r.Late = append(r.Late, row.ClassCount{Class: class, N: n})
		}
	}
	return r
}
