package clock

import (
	"testing"
	"time"
)

func TestNapLastsAsLongAsItShall(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, NapLimit} {
		begin := time.Now()
		Nap(d)
		if took := time.Since(begin); took < d {
			t.Errorf("a nap of %v ended after %v", d, took)
		}
	}
}

// The two show how late each wakes: the benchmark's time is that of a wait of 1 ms.
func BenchmarkNap(b *testing.B) {
	for b.Loop() {
		Nap(time.Millisecond)
	}
}

func BenchmarkTimer(b *testing.B) {
	for b.Loop() {
		time.Sleep(time.Millisecond)
	}
}
