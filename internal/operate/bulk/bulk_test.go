package bulk

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/delaytask/delaytask/internal/operate/audit"
)

func TestARunTellsHowFarItIsAndCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs Runs
		defer runs.End()
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
		first, err := runs.Start(About{Verb: "cancel", Who: "ops"}, nil, change)
		if err != nil || first.Outcome != Running || first.Began.IsZero() {
			t.Fatal(first, err)
		}
		id := first.ID
		next <- 500
		synctest.Wait()
		if s, known := runs.Get(id); !known || s.Outcome != Running || s.Done != 500 ||
			!s.Ended.IsZero() || s.Who != "ops" {
			t.Fatalf("under way: %+v, %t", s, known)
		}
		if runs.Stop("other") || !runs.Stop(id) {
			t.Error("a run of this process can be stopped, and no other")
		}
		synctest.Wait()
		if s, _ := runs.Get(id); s.Done != 500 || s.Stopping ||
			!errors.Is(s.Err, ErrStopped) || errors.Is(s.Err, ErrClosed) || s.Outcome != Stopped || runs.Stop(id) {
			t.Fatalf("stopped: %+v", s)
		}
		last := first
		for range mostRunning {
			if last, err = runs.Start(About{}, nil, change); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := runs.Start(About{}, nil, change); !errors.Is(err, ErrTooMany) {
			t.Errorf("%v, want ErrTooMany", err)
		}
		if all := runs.All(); len(all) != mostRunning+1 || all[0].ID != last.ID || all[mostRunning].ID != id {
			t.Errorf("all runs, the newest first: %+v", all)
		}
		runs.End()
		runs.Wait(t.Context())
		if s, _ := runs.Get(last.ID); !errors.Is(s.Err, ErrClosed) || s.Outcome != Stopped {
			t.Errorf("closed: %+v", s)
		}
		if _, err := runs.Start(About{}, nil, change); !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

func TestOldRunsAreForgottenAndOthersKept(t *testing.T) {
	t.Parallel()
	var runs Runs
	defer runs.End()
	open, err := runs.Start(About{}, nil, func(ctx context.Context, _ func(int)) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	for range mostKept + 10 {
		for {
			_, err := runs.Start(About{}, nil, func(context.Context, func(int)) (int, error) { return 1, nil })
			if err == nil {
				break
			}
			if !errors.Is(err, ErrTooMany) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	if _, known := runs.Get(open.ID); !known || len(runs.runs) > mostKept+mostRunning {
		t.Errorf("%d runs, the open one is among them: %t", len(runs.runs), known)
	}
}

func TestARunThatCannotBeginHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var runs Runs
	begins := map[string]func() (*audit.Entry, error){
		"error": func() (*audit.Entry, error) { return nil, errors.New("the database is away") },
		"panic": func() (*audit.Entry, error) { panic("a fault") },
	}
	for name, begin := range begins {
		for range mostRunning + 1 {
			func() {
				defer func() { _ = recover() }()
				if _, err := runs.Start(About{}, begin, nil); err == nil || errors.Is(err, ErrTooMany) {
					t.Errorf("%s: %v", name, err)
				}
			}()
		}
	}
	runs.End()
	runs.Wait(t.Context()) // for nothing
}

func TestOneWhoDoesNotTakeAllRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs Runs
		defer runs.End()
		f := func(who string, want error) {
			t.Helper()
			_, err := runs.Start(About{Who: who}, nil, func(ctx context.Context, _ func(int)) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", who, err, want)
			}
		}
		f("weak", nil)
		f("weak", nil)
		f("weak", ErrTooMany)
		f("other", nil)
		f("other", ErrTooMany)
		f("last", nil)
		f("none", ErrTooMany)
	})
}
