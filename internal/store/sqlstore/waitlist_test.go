package sqlstore

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// waited is how long a statement waits for a connection while ready reports false.
func waited(t *testing.T, w *waitlist, ready func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	w.until(t.Context(), false, ready)
	return time.Since(began)
}

func never() bool { return false }

func TestAStatementWaitsForAConnectionAsLongAsAFewQuickOnesTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waitlist{tempo: new(tempo)}
		for _, c := range []struct {
			took []time.Duration
			want time.Duration
		}{
			{[]time.Duration{time.Millisecond}, leastWait},
			{[]time.Duration{20 * time.Millisecond, time.Second}, 80 * time.Millisecond}, // the other waits for a lock
			{[]time.Duration{time.Minute}, longestWait},
		} {
			for i := range lastDone {
				w.tempo.note(c.took[i%len(c.took)])
			}
			if got := waited(t, w, never); got != c.want {
				t.Errorf("after statements of %v it waits %v, want %v", c.took, got, c.want)
			}
		}
	})
}

func TestAStatementWaitsForLongerAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ first, write, read time.Duration }{
			{time.Millisecond, leastWait, longestWait},
			{30 * time.Millisecond, 120 * time.Millisecond, 480 * time.Millisecond},
			{270 * time.Millisecond, freshWait, 4320 * time.Millisecond},
			{time.Minute, freshWait, calmWait},
		} {
			pace := &tempo{fresh: time.Now()}
			pace.note(c.first)
			if write, read := pace.patience(false), pace.patience(true); write != c.write || read != c.read {
				t.Errorf("after a statement of %v a write waits %v and a read %v, want %+v", c.first, write, read, c)
			}
		}
	})
}

func TestStatementsThatWaitTogetherLosePatienceOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waitlist{tempo: &tempo{fresh: time.Now()}}
		var free atomic.Bool
		ends := make(chan time.Duration, 3)
		for began, i := time.Now(), 0; i < cap(ends); i++ {
			go func() {
				w.until(t.Context(), true, free.Load)
				ends <- time.Since(began)
			}()
			synctest.Wait()
		}
		time.Sleep(longestWait + time.Millisecond)
		if synctest.Wait(); len(ends) != 1 {
			t.Fatalf("%d of three have lost patience after %v, want one", len(ends), longestWait)
		}
		<-ends
		free.Store(true)
		w.freed() // tells one; the other loses patience by itself
		if got := <-ends; got != longestWait+time.Millisecond {
			t.Errorf("the second went on after %v, want at once when a connection is free", got)
		}
		if got := <-ends; got != 3*longestWait || len(w.waiting) != 0 {
			t.Errorf("the third went on after %v, and %d wait", got, len(w.waiting))
		}
	})
}

// Each wait ends soon, because others give connections back. That they wait again and again tells that one more helps.
func TestStatementsThatWaitAgainAndAgainOpenAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waitlist{tempo: new(tempo)}
		waits := func(n int) (opened int) {
			for range n {
				began, pause := time.Now(), 2*time.Millisecond
				time.AfterFunc(pause, w.freed)
				if waited(t, w, func() bool { return time.Since(began) >= pause }) < pause {
					opened++
				}
				time.Sleep(pause)
			}
			return opened
		}
		if got := waits(30); got < 5 || got > 10 {
			t.Errorf("%d connections were opened in 30 waits of 2 ms, want one for each %v", got, leastWait)
		}
		time.Sleep(spareFor)
		if got := waits(2); got != 0 {
			t.Error("waits of long ago count")
		}
	})
}

func TestAnOverloadedServerGetsFewerClaimsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pace tempo
		after := func(took time.Duration) int {
			for range lastDone {
				pace.note(took)
			}
			return pace.atOnce(3)
		}
		for took, want := range map[time.Duration]int{0: 3, 7 * time.Millisecond: 3} {
			if got := after(time.Millisecond + took); got != want {
				t.Errorf("claims of %v more than usual: %d at once, want %d", took, got, want)
			}
		}
		if got := after(100 * time.Millisecond); got != 1 {
			t.Errorf("claims take a hundred times longer than usual: %d at once, want 1", got)
		}
		pace.note(time.Millisecond)
		if got := pace.atOnce(3); got != 3 {
			t.Errorf("one was as quick as usual, so the others wait for locks: %d at once, want 3", got)
		}
		time.Sleep(2*usualFor + time.Second)
		after(100 * time.Millisecond)
		time.Sleep(usualFor)
		if got := after(100 * time.Millisecond); got != 3 {
			t.Errorf("a server that is as slow for long: %d at once, want 3", got)
		}
	})
}
