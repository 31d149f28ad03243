package batch

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkAdd(b *testing.B) {
	c := coalescer(Config[*int]{Flush: func([]*int) {}, MaxItems: 500, Size: func(*int) int { return 100 }})
	item := new(int)
	for b.Loop() {
		if err := c.Add(item); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddFrom64Goroutines(b *testing.B) {
	c := coalescer(Config[*int]{Flush: func([]*int) {}, MaxItems: 500, Size: func(*int) int { return 100 }})
	item := new(int)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := c.Add(item); err != nil {
				b.Error(err)
			}
		}
	})
}

// Sixty-four callers wait for their answers, as saves do; a flush takes as long as a commit.
func Benchmark64WaitingCallers(b *testing.B) {
	var batches atomic.Int64
	c := coalescer(Config[chan struct{}]{MaxItems: 500, Flush: func(batch []chan struct{}) {
		batches.Add(1)
		time.Sleep(time.Millisecond)
		for _, done := range batch {
			done <- struct{}{}
		}
	}})
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			done := make(chan struct{}, 1)
			for left.Add(-1) >= 0 {
				if err := c.Add(done); err != nil {
					b.Error(err)
					return
				}
				<-done
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/float64(batches.Load()), "items/batch")
}
