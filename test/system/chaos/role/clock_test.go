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
		for slew, want := range map[float64]time.Duration{-.02: time.Millisecond, .1: 5 * time.Millisecond, .001: 0} {
			l := &listener{Store: slewed{clock: Clock{Slew: slew, From: time.Now()}}, slew: slew}
			for _, want := range []time.Duration{want, want, 0} { // the reading before the last one still counts
				_, _ = l.Now(t.Context())
				time.Sleep(50 * time.Millisecond)
				if got := l.doubt(); got != want {
					t.Errorf("at %v the doubt is %v, want %v", slew, got, want)
				}
			}
		}
	})
}
