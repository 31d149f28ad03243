package bulk

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
)

func TestARunTellsHowFarItIsAndCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs Runs
		defer runs.Close()
		next := make(chan int)
		change := func(ctx context.Context, progress func(int)) (int, error) {
			done := 0
			for {
				select {
				case n, more := <-next:
					if !more {
						return done, nil
					}
					done += n
					progress(done)
				case <-ctx.Done():
					return done, ctx.Err()
				}
			}
		}
		id, err := runs.Start(About{Verb: "cancel", Who: "ops"}, change)
		if err != nil {
			t.Fatal(err)
		}
		next <- 500
		synctest.Wait()
		if s, known := runs.Get(id); !known || s.Done != 500 || !s.Ended.IsZero() || s.Who != "ops" {
			t.Fatalf("under way: %+v, %t", s, known)
		}
		if runs.Stop("other") || !runs.Stop(id) {
			t.Error("a run of this process can be stopped, and no other")
		}
		synctest.Wait()
		if s, _ := runs.Get(id); s.Done != 500 || !errors.Is(s.Err, ErrStopped) || s.Ended.IsZero() || runs.Stop(id) {
			t.Fatalf("stopped: %+v", s)
		}
		last := ""
		for range mostRunning {
			if last, err = runs.Start(About{}, change); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := runs.Start(About{}, change); !errors.Is(err, ErrTooMany) {
			t.Errorf("%v, want ErrTooMany", err)
		}
		runs.Close()
		if s, _ := runs.Get(last); !errors.Is(s.Err, ErrClosed) {
			t.Errorf("closed: %+v", s)
		}
		if _, err := runs.Start(About{}, change); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

func TestOldRunsAreForgottenAndOthersKept(t *testing.T) {
	t.Parallel()
	var runs Runs
	defer runs.Close()
	open, err := runs.Start(About{}, func(ctx context.Context, _ func(int)) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	for range mostKept + 10 {
		for {
			_, err := runs.Start(About{}, func(context.Context, func(int)) (int, error) { return 1, nil })
			if err == nil {
				break
			}
			if !errors.Is(err, ErrTooMany) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	if _, known := runs.Get(open); !known || len(runs.runs) > mostKept+mostRunning {
		t.Errorf("%d runs, the open one is among them: %t", len(runs.runs), known)
	}
}
