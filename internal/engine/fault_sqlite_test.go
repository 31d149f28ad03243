package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/faultstore"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/migrations"
)

// scenesAtOnce is how many scenarios run side by side; they mostly sleep.
const scenesAtOnce = 8

// sqliteFile returns the bytes of a migrated database.
func sqliteFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.db")
	pool, kind, err := store.Connect(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool.DB, kind); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// verdict collects what a scene finds wrong.
type verdict struct {
	testing.TB
	mu    sync.Mutex
	wrong []string
}

func (*verdict) Helper() {}

func (v *verdict) Error(args ...any) { v.Errorf("%s", fmt.Sprint(args...)) }

func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatal(args ...any) {
	v.Error(args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}

// How long a scene waits for one answer of the store: at first, and at most.
const (
	firstCall = 500 * time.Millisecond
	lastCall  = 8 * time.Second
)

// playOnSQLite runs the scenario on databases of its own and reports whether the fault was met. What must hold is promised for
// the one planned fault. On a slow machine other calls may run into their timeouts as well; a scene that fails and had such a
// call is played again with twice the time.
func playOnSQLite(t *testing.T, file []byte, name string, plan faultstore.Plan) (met bool) {
	for call := firstCall; ; call *= 2 {
		path := fmt.Sprintf("%s-%v.db", name, call)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Error(err)
			return false
		}
		v := &verdict{TB: t}
		faults, cut := v.play(path, plan, call)
		if len(v.wrong) > 0 && cut > 0 && call < lastCall {
			t.Logf("%s: %d calls took longer than %v; once more: %q", name, cut, call, v.wrong)
			continue
		}
		for _, wrong := range v.wrong {
			t.Errorf("%s, with %d calls that took too long: %s", name, cut, wrong)
		}
		return faults > 0
	}
}

// play runs the scenario once. It returns how many calls met the planned fault, and how many others took too long.
func (v *verdict) play(path string, plan faultstore.Plan, call time.Duration) (faults, cut int) {
	pool, kind, err := store.Connect(v.Context(), "sqlite:"+path)
	if err != nil {
		v.Error(err)
		return 0, 0
	}
	defer pool.Close()
	inner := store.New(pool, kind)
	defer func() {
		if err := inner.Close(context.WithoutCancel(v.Context())); err != nil {
			v.Error(err)
		}
	}()
	faulty := faultstore.New(inner, plan)
	ended := make(chan struct{})
	go func() { // which a scene that cannot go on ends
		defer close(ended)
		newScene(v, inner).play(faulty, pace{
			second: 200 * time.Millisecond, ttr: max(30*time.Second, 60*call), wait: max(time.Minute, 120*call), call: call,
		})
	}()
	<-ended
	faulty.Wait()
	return faulty.Faults(), faulty.Cut()
}

func TestEveryCallOfSQLiteMayFail(t *testing.T) {
	t.Parallel()
	file, dir := sqliteFile(t), t.TempDir()
	places := make(chan struct{}, scenesAtOnce)
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.After, faultstore.Hang} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			var through atomic.Bool
			for n := 1; !through.Load() && n < 400; n++ {
				places <- struct{}{}
				wg.Go(func() {
					defer func() { <-places }()
					if !playOnSQLite(t, file, filepath.Join(dir, fmt.Sprintf("%v-%d", mode, n)), faultstore.Nth(n, mode)) {
						through.Store(true)
					}
				})
			}
			wg.Wait()
		})
	}
}
