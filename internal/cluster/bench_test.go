package cluster

import (
	"testing"
	"time"
)

func BenchmarkNextID(b *testing.B) {
	ids := NewIDs(1, time.Now)
	for b.Loop() {
		ids.Next()
	}
}

func BenchmarkNextIDFromManyGoroutines(b *testing.B) {
	ids := NewIDs(1, time.Now)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ids.Next()
		}
	})
}
