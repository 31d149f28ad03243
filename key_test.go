package delaytask

import (
	"errors"
	"sync"
	"testing"
	"time"
)

func TestKeyIsFreeAgainWhenItsTaskIsFinished(t *testing.T) {
	t.Parallel()
	f := open(t)
	first, err := f.SaveDelayTask(t.Context(), "t", "1", time.Hour, WithKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := f.SaveDelayTask(t.Context(), "t", "2", time.Hour, WithKey("k")); id != first || !errors.Is(err, ErrDuplicate) {
		t.Errorf("while unfinished: %d, %v, want %d", id, err, first)
	}
	if met, err := f.Cancel(t.Context(), Key("t", "k")); met != Pending || err != nil {
		t.Fatalf("cancel by key: %v, %v", met, err)
	}
	if id, err := f.SaveDelayTask(t.Context(), "t", "3", time.Hour, WithKey("k")); id == first || err != nil {
		t.Errorf("when finished: %d, %v, want a new task", id, err)
	}
}

func TestOneKeySavedByManyIsOneTask(t *testing.T) {
	t.Parallel()
	f := open(t)
	var mu sync.Mutex
	var stored, met int
	ids := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			id, err := f.SaveDelayTask(t.Context(), "t", i, time.Hour, WithKey("k"))
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
			switch {
			case err == nil:
				stored++
			case errors.Is(err, ErrDuplicate):
				met++
			}
		})
	}
	wg.Wait()
	if stored != 1 || met != 99 || len(ids) != 1 {
		t.Errorf("%d stored, %d duplicates, %d ids", stored, met, len(ids))
	}
}
