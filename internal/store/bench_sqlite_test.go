package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/migrations"
)

// lives takes batch after batch of tasks through insert, claim and settle on a SQLite file, and lets the clock run during one of
// them.
func lives(b *testing.B, timed string) {
	store.AtBatches(b, func(b *testing.B, n int) {
		s := benchStore(b)
		next := int64(1)
		b.ResetTimer()
		for range b.N {
			rows := store.BenchRows(next, n)
			next += int64(n)
			for _, step := range []struct {
				name string
				do   func(context.Context) (int, error)
			}{
				{"insert", func(ctx context.Context) (int, error) { return n, s.Insert(ctx, nil, rows) }},
				{"claim", func(ctx context.Context) (int, error) {
					won, err := s.Claim(ctx, store.ClaimOf(rows))
					return len(won.Rows), err
				}},
				{"settle", func(ctx context.Context) (int, error) { return s.Update(ctx, nil, store.CompletionsOf(rows)) }},
			} {
				if step.name != timed {
					b.StopTimer()
				}
				met, err := step.do(b.Context())
				if b.StartTimer(); err != nil || met != n {
					b.Fatalf("%s of %d rows met %d: %v", step.name, n, met, err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/row")
	})
}

func BenchmarkSQLiteInsert(b *testing.B) { lives(b, "insert") }

// The claim reads its rows back, bodies included.
func BenchmarkSQLiteClaim(b *testing.B) { lives(b, "claim") }

func BenchmarkSQLiteSettle(b *testing.B) { lives(b, "settle") }

func benchStore(b *testing.B) *store.Store {
	b.Helper()
	db, kind, err := store.Connect(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	if err := migrations.Up(b.Context(), db.DB, kind); err != nil {
		b.Fatal(err)
	}
	s := store.New(db, kind)
	b.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}
