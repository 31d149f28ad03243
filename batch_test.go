package delaytask

import (
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestBatchesOfEverySize(t *testing.T) {
	t.Parallel()
	f := inMemory(t)
	for _, n := range []int{0, 1, processor.MaxItems, processor.MaxItems + 1} {
		before := f.total(t)
		items := make([]Item, n)
		for i := range items {
			items[i] = Item{Tag: "t", Delay: time.Hour}
		}
		results, err := f.SaveDelayTasks(t.Context(), items)
		if n > processor.MaxItems {
			if !errors.Is(err, ErrBatchTooLarge) || f.total(t) != before {
				t.Errorf("%d tasks: %v", n, err)
			}
			continue
		}
		ids := map[int64]bool{}
		for _, r := range results {
			ids[r.ID] = r.Err == nil
		}
		if err != nil || len(ids) != n || ids[0] || f.total(t) != before+n {
			t.Errorf("%d tasks: %v, %d ids, %d stored", n, err, len(ids), f.total(t)-before)
		}
	}
}

// total counts all tasks, however many there are.
func (f fixture) total(t *testing.T) (n int) {
	t.Helper()
	stats, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range stats {
		for _, count := range tag.Counts {
			n += int(count)
		}
	}
	return n
}

func TestDuplicateInABatchIsItsOwn(t *testing.T) {
	t.Parallel()
	f := open(t)
	key := []Option{WithKey("k")}
	results, err := f.SaveDelayTasks(t.Context(), []Item{
		{Tag: "t", Body: "first", Delay: time.Hour, Options: key}, {Tag: "t", Delay: time.Hour},
		{Tag: "t", Body: "second", Delay: time.Hour, Options: key}, {Tag: "u", Delay: time.Hour, Options: key},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, nil, ErrDuplicate, nil} {
		if !errors.Is(results[i].Err, want) {
			t.Errorf("item %d: %v, want %v", i, results[i].Err, want)
		}
	}
	if results[2].ID != results[0].ID || string(f.get(t, results[0].ID).Body) != "first" {
		t.Errorf("the duplicate names task %d, want %d with its body unchanged", results[2].ID, results[0].ID)
	}
}
