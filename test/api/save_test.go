package api

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// Package processor tests each argument at its bounds. Here is one of each kind, and the checks of the forms
// themselves.
func TestBadSavesAreRefusedAndStoreNothing(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		tag := func(tag string) delaytask.Item { return delaytask.Item{Tag: tag} }
		body := func(body any) delaytask.Item { return delaytask.Item{Tag: "t", Body: body} }
		delay := func(d time.Duration) delaytask.Item { return delaytask.Item{Tag: "t", Delay: d} }
		with := func(opts ...delaytask.Option) delaytask.Item { return delaytask.Item{Tag: "t", Options: opts} }
		for name, c := range map[string]struct {
			item delaytask.Item
			want error
		}{
			"an empty tag":                 {tag(""), delaytask.ErrInvalidTag},
			"a tag with SQL":               {tag("'; DROP TABLE delay_task_message; --"), delaytask.ErrInvalidTag},
			"a body that is not UTF-8":     {body("\xff"), delaytask.ErrInvalidBody},
			"a body that does not marshal": {body(make(chan int)), delaytask.ErrInvalidBody},
			"a body one byte over the limit": {body(make([]byte, request.DefaultBodyLimit+1)),
				delaytask.ErrBodyTooLarge},
			"a delay of -1 ns":       {delay(-1), delaytask.ErrInvalidDelay},
			"the longest duration":   {delay(math.MaxInt64), delaytask.ErrDelayTooLong},
			"a time that is not set": {with(delaytask.WithTime(time.Time{})), delaytask.ErrInvalidTime},
			"a time and a delay": {delaytask.Item{Tag: "t", Delay: 1, Options: []delaytask.Option{
				delaytask.WithTime(time.Now()),
			}}, delaytask.ErrInvalidOption},
			"a key of the reserved space":  {with(delaytask.WithKey("s3:7")), delaytask.ErrInvalidKey},
			"an app that cannot be one":    {with(delaytask.WithApp("a b")), delaytask.ErrInvalidOption},
			"an id that NewID never makes": {with(delaytask.WithID(7)), delaytask.ErrInvalidID},
			"an id that is the last one":   {with(delaytask.WithID(math.MaxInt64)), delaytask.ErrInvalidID},
			"a TTR of ten years":           {with(delaytask.WithTTR(87_600 * time.Hour)), delaytask.ErrInvalidTTR},
			"negative max attempts":        {with(delaytask.WithMaxAttempts(-1)), delaytask.ErrInvalidMaxAttempts},
			"a priority over 100":          {with(delaytask.WithPriority(101)), delaytask.ErrInvalidPriority},
			"a header that is not UTF-8":   {with(delaytask.WithHeader("h", "\xff")), delaytask.ErrInvalidHeaders},
			"a late policy that is not there": {with(delaytask.WithMaxLateness(time.Second, 7)),
				delaytask.ErrInvalidOption},
			"an option that is nil": {with(nil), delaytask.ErrInvalidOption},
		} {
			id, err := s.SaveDelayTask(t.Context(), c.item.Tag, c.item.Body, c.item.Delay, c.item.Options...)
			if id != 0 || !errors.Is(err, c.want) {
				t.Errorf("%s: got %d, %v, want %v", name, id, err, c.want)
			}
			_, err = s.SaveDelayTasks(t.Context(), []delaytask.Item{{Tag: "good"}, c.item})
			if refused, ok := errors.AsType[*delaytask.BatchError](err); !ok || refused.Index != 1 ||
				!errors.Is(err, c.want) {
				t.Errorf("%s, second in a batch: got %v, want %v for index 1", name, err, c.want)
			}
		}
		if n := total(t, s); n != 0 {
			t.Errorf("%d tasks are stored, want none", n)
		}
		save(t, s, "t", 0)
	})
}

func TestWhatIsUnusualAndRightIsStored(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		stored := func(delay time.Duration, opts ...delaytask.Option) delaytask.TaskRow {
			t.Helper()
			return get(t, s, save(t, s, "t", delay, opts...))
		}
		want := func(what string, got, want any) {
			t.Helper()
			if got != want {
				t.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		save(t, s, "T", 0)
		if page, err := s.List(t.Context(), delaytask.Filter{Tag: "T"}); err != nil || len(page.Tasks) != 1 {
			t.Errorf("tag T has %d tasks, %v, want 1: letter case counts", len(page.Tasks), err)
		}
		large := `"` + strings.Repeat("x", request.DefaultBodyLimit-2) + `"`
		id, err := s.SaveDelayTask(t.Context(), "t", large, 0)
		servertest.OK(t, err)
		want("a body at the limit", string(get(t, s, id).Body) == large, true)
		want("a delay of 1 ns", stored(1).Delay, time.Millisecond)
		past := stored(0, delaytask.WithTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
		want("the delay of a past time", past.Delay, time.Duration(0))
		if past.Expected.Year() < 2024 {
			t.Errorf("a past time is expected at %v, want now", past.Expected)
		}
		zone := time.FixedZone("CEST", 2*60*60)
		want("a time in a zone", stored(0, delaytask.WithTime(time.Date(2190, 10, 28, 2, 30, 0, 0, zone))).Expected,
			time.Date(2190, 10, 28, 0, 30, 0, 0, time.UTC))
		later := time.Now().Add(time.Hour) // with a monotonic reading
		if got := stored(0, delaytask.WithTime(later)).Expected; got.Before(later) ||
			got.Sub(later) > time.Millisecond {
			t.Errorf("expected at %v, want %v", got, later)
		}
		want("a key of 255 letters", stored(0, delaytask.WithKey(strings.Repeat("é", 255))).Key,
			strings.Repeat("é", 255))
		want("no TTR", stored(0).TTR, 15*time.Second)
		want("a TTR of 1 ms", stored(0, delaytask.WithTTR(time.Millisecond)).TTR, time.Second)
		want("no max attempts", stored(0).MaxAttempts, 20)
		want("no limit of attempts", stored(0, delaytask.WithNoAttemptLimit()).MaxAttempts, 0)
	})
}

func TestTheSameIDTwiceIsOneTask(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		id := delaytask.NewID()
		for range 2 {
			if got := save(t, s, "t", time.Hour, delaytask.WithID(id)); got != id {
				t.Fatalf("got %d, want %d", got, id)
			}
		}
		_, err := s.SaveDelayTask(t.Context(), "t", 2, time.Hour, delaytask.WithID(id))
		wantError(t, "another content", err, delaytask.ErrConflict)
		if n := total(t, s); n != 1 {
			t.Errorf("%d tasks, want 1", n)
		}
	})
}

func TestBatchesOfEverySize(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, request.MaxItems, request.MaxItems + 1} {
		s := delaytasktest.New(t) // independent of the database
		results, err := s.SaveDelayTasks(t.Context(), slices.Repeat([]delaytask.Item{{Tag: "t", Delay: time.Hour}}, n))
		stored := int(total(t, s))
		if n > request.MaxItems {
			if !errors.Is(err, delaytask.ErrBatchTooLarge) || stored != 0 {
				t.Errorf("%d tasks: %v", n, err)
			}
			continue
		}
		ids := map[int64]bool{}
		for _, r := range results {
			ids[r.ID] = r.Err == nil
		}
		if err != nil || len(ids) != n || ids[0] || stored != n {
			t.Errorf("%d tasks: %v, %d ids, %d stored", n, err, len(ids), stored)
		}
	}
}

func TestDuplicateInABatchIsItsOwn(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		key := []delaytask.Option{delaytask.WithKey("k")}
		results, err := s.SaveDelayTasks(t.Context(), []delaytask.Item{
			{Tag: "t", Body: 1, Delay: time.Hour, Options: key}, {Tag: "t", Delay: time.Hour},
			{Tag: "t", Body: 2, Delay: time.Hour, Options: key}, {Tag: "u", Delay: time.Hour, Options: key},
		})
		servertest.OK(t, err)
		for i, want := range []error{nil, nil, delaytask.ErrDuplicate, nil} {
			if !errors.Is(results[i].Err, want) {
				t.Errorf("item %d: %v, want %v", i, results[i].Err, want)
			}
		}
		if results[2].ID != results[0].ID || string(get(t, s, results[0].ID).Body) != "1" {
			t.Errorf("the duplicate names task %d, want %d with its body unchanged", results[2].ID, results[0].ID)
		}
	})
}

func TestARefusedTaskLeavesNothingOfItsChunk(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		const chunk = 500 // the size of a chunk
		items := slices.Repeat([]delaytask.Item{{Tag: "t", Delay: time.Hour}}, 2*chunk+1)
		items[chunk+7].Options = []delaytask.Option{delaytask.WithID(save(t, s, "other", time.Hour))}
		results, err := s.SaveDelayTasks(t.Context(), items)
		if !errors.Is(err, delaytask.ErrConflict) {
			t.Fatalf("got %v", err)
		}
		for i, r := range results {
			refused := i/chunk == 1
			if (r.Err != nil) != refused || r.Chunk != i/chunk ||
				errors.Is(r.Err, delaytask.ErrChunkRefused) != (refused && i != chunk+7) {
				t.Fatalf("task %d: %+v", i, r)
			}
		}
		if n := total(t, s); n != chunk+2 {
			t.Errorf("%d tasks, want two chunks and the one from before", n)
		}
	})
}
