package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/faultstore"
	"github.com/delaytask/delaytask/internal/memstore"
)

// idleCalls counts what a node asks its store in half a minute in which nothing is due, while pops of the tag wait: each for 10 s,
// and then again.
func idleCalls(t *testing.T, tag string, pops int) (calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		counting := faultstore.New(memstore.New())
		e, err := engine.New(t.Context(), newScene(t, counting).config(counting, pace{
			second: time.Second, ttr: time.Minute, call: 10 * time.Second,
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range pops {
			waiting.Go(func() {
				for ctx.Err() == nil {
					got, err := e.Pop(ctx, engine.PopRequest{Tags: []string{tag}, Max: 50, Waits: true, Wait: 10 * time.Second})
					if len(got) > 0 || err != nil && ctx.Err() == nil {
						t.Errorf("popped %v, %v", got, err)
					}
				}
			})
		}
		time.Sleep(5 * time.Second) // the first pop of a tag has a look
		before := counting.Calls()
		time.Sleep(30 * time.Second)
		calls = counting.Calls() - before
		hangUp()
		waiting.Wait()
	})
	return calls
}

func TestWaitingPopsAskTheStoreNothing(t *testing.T) {
	nobody := idleCalls(t, "plain", 0)
	if nobody == 0 {
		t.Fatal("a node that serves a tag never looks for it")
	}
	for tag, what := range map[string]string{"plain": "a tag with a processor", "pulled": "a tag without one"} {
		for _, pops := range []int{1, 1000} {
			calls := idleCalls(t, tag, pops)
			if off := max(calls-nobody, nobody-calls); off > nobody/20 { // periods are drawn about their length
				t.Errorf("%s: while %d pops wait the store is asked %d times in 30 s; without them %d times", what, pops, calls, nobody)
			}
		}
	}
}
