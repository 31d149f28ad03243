package clock

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func BenchmarkAtLeast(b *testing.B) {
	c := New()
	c.Add(row.Reading{Server: "a", Time: row.At(time.Now())}, time.Now(), time.Now())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.AtLeast()
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	c := New()
	for b.Loop() {
		sent := time.Now()
		c.Add(row.Reading{Server: "a", Time: row.Time(sent.UnixMicro())}, sent, time.Now())
	}
}
