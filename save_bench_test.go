package delaytask

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/memstore"
)

// BenchmarkSave saves one task after the other where no database takes its time.
func BenchmarkSave(b *testing.B) {
	cfg, err := prepare(b.Context(), Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	s, err := onStore(b.Context(), memstore.New(), cfg, func(context.Context) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(context.Background()) })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.SaveDelayTask(b.Context(), "t", "body", 30*24*time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}
