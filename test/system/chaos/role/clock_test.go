package role

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// slewed is a server that answers at once by its clock.
type slewed struct {
	store.Store
	clock Clock
}

func (s slewed) Now(context.Context) (row.Reading, error) {
	return row.Reading{Time: row.At(s.clock.At(time.Now()))}, nil
}

func TestDoubtGrowsWithTheAgeOfAReadingUntilOneShowsTheSlew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for slew, want := range map[float64]struct {
			doubt    time.Duration
			readings int // that show no slew
		}{-.02: {time.Millisecond, 32}, .1: {5 * time.Millisecond, 7}, .001: {0, 0}} {
			l := &listener{Store: slewed{clock: Clock{Slew: slew, From: time.Now()}}, slew: slew}
			for n := range 40 {
				_, _ = l.Now(t.Context())
				time.Sleep(50 * time.Millisecond)
				doubt := want.doubt
				if n > want.readings { // the reading before the last one still counts
					doubt = 0
				}
				if got := l.doubt(); got != doubt {
					t.Errorf("at %v the doubt after reading %d is %v, want %v", slew, n, got, doubt)
				}
			}
		}
	})
}
