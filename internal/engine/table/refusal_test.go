package table

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/store"
)

// unlookable does not tell which rows are locked.
type unlookable struct{ store.Store }

func (unlookable) Locked(context.Context, []int64) ([]int64, error) {
	return nil, errors.New("no answer")
}

// TestRowsAreFreeWhereLocksAreNotTold: a statement that meets the lock finds out.
func TestRowsAreFreeWhereLocksAreNotTold(t *testing.T) {
	life := lifecycle.New(t.Context(), lifecycle.Config{Log: slog.New(slog.DiscardHandler)})
	defer life.End()
	table := &Table{Clock: &Clock{Lifecycle: life}, Store: unlookable{}}
	rows := []int64{1, 2}
	held, free, err := SplitLocked(t.Context(), table, rows, func(id int64) int64 { return id })
	if len(held) > 0 || !slices.Equal(free, rows) || err == nil {
		t.Errorf("%v are held, %v are free, %v", held, free, err)
	}
}
