package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// playOnSQLite runs the scenario on a database of its own and reports whether the fault was met.
func playOnSQLite(t *testing.T, path string, plan faultstore.Plan) bool {
	pool, kind, err := store.Connect(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Error(err)
		return false
	}
	defer pool.Close()
	inner := store.New(pool, kind)
	defer func() {
		if err := inner.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	faulty := faultstore.New(inner, plan)
	newScene(t, inner).play(faulty, pace{
		second: 200 * time.Millisecond, ttr: 30 * time.Second, wait: time.Minute, call: 500 * time.Millisecond,
	})
	faulty.Wait()
	return faulty.Faults() > 0
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
				path := filepath.Join(dir, fmt.Sprintf("%v-%d.db", mode, n))
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				places <- struct{}{}
				wg.Go(func() {
					defer func() { <-places }()
					if !playOnSQLite(t, path, faultstore.Nth(n, mode)) {
						through.Store(true)
					}
				})
			}
			wg.Wait()
		})
	}
}
