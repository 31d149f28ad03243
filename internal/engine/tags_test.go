package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/row"
)

func TestTagsThatWerePoppedOnceAreForgotten(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"served": untilEnd(0, nil)})
		known := func() (int, int) {
			n := e.runqueue.Counts()
			return n.Tags, n.TagNumbers
		}
		before, _ := known()
		for round := range 5 {
			for n := range 50 {
				tag := fmt.Sprintf("%d.%d", round, n)
				w.save(e, tag, 0)
				task := w.take(e, tag)
				w.must(e.Finish(w.Context(), task.ID, task.Version))
			}
			time.Sleep(30*time.Second + 3*time.Second)
		}
		w.save(e, "served", 0)
		time.Sleep(time.Second)
		if named, numbered := known(); named > before+1 || numbered > 100 {
			w.Errorf(
				"%d tags are known after 250 that were popped once, %d before; %d numbers are in use",
				named,
				before,
				numbered,
			)
		}
	})
}

func TestNodeServesOnlySoManyTagsThatAreJustPopped(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		tags := make([]string, 10_000)
		for n := range tags {
			tags[n] = fmt.Sprint(n)
		}
		pop := func(tags ...string) error {
			_, err := e.Pop(w.Context(), lease.PopRequest{Tags: tags, Max: 1, Waits: true})
			return err
		}
		w.must(pop(tags...))
		if err := pop("one more"); !errors.Is(err, delaytask.ErrOverloaded) {
			w.Errorf("one more: %v", err)
		}
		if err := pop(tags[:2]...); err != nil {
			w.Errorf("one of those: %v", err)
		}
		time.Sleep(30*time.Second + 2*time.Second)
		if err := pop("one more"); err != nil {
			w.Errorf("after a while: %v", err)
		}
	})
}

func TestACallerPopsAsManyTagsAsItLeavesToOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		popped := 0
		pop := func(caller string, tags int) error {
			r := lease.PopRequest{Caller: caller, Max: 1, Waits: true}
			for range tags {
				r.Tags, popped = append(r.Tags, fmt.Sprint(popped)), popped+1
			}
			_, err := e.Pop(w.Context(), r)
			return err
		}
		w.must(pop("weak", 100))
		w.must(pop("weak", 4900))
		if err := pop("weak", 1); !errors.Is(err, delaytask.ErrOverloaded) {
			w.Errorf("one more: %v", err)
		}
		w.must(pop("other", 2500))
		w.must(pop("late", 1))
		own := lease.PopRequest{Caller: "weak", Tags: []string{"7"}, Waits: true}
		if _, err := e.Pop(w.Context(), own); err != nil {
			w.Errorf("one of its own: %v", err)
		}
	})
}

func TestProcessThatStartsRunsNothingOfAPausedTag(t *testing.T) {
	inBubbles(t, map[string]time.Duration{"at once": 0, "when the database is there": 10 * time.Second},
		func(w *world, away time.Duration) {
			began := time.Now()
			reads := at(w.store, "Tags", func(_ context.Context, do func() error) error {
				if time.Since(began) < away {
					return classError(row.ClassNotApplied, "the database is away")
				}
				return do()
			})
			e := w.idle(reads, serving{"a": nothing, "b": nothing})
			w.must(w.store.SetTag(w.Context(), row.TagState{Tag: "a", Paused: true}))
			paused, open := w.save(e, "a", 0), w.save(e, "b", 0)
			time.Sleep(2 * time.Second)
			w.must(e.Start(w.Context()))
			time.Sleep(away + 5*time.Second)
			w.standing(row.Pending, 0, 0, paused)
			w.standing(row.Completed, 1, 0, open)
		})
}
