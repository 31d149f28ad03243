package clock

import (
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRateAddsUpWhatTheKernelSlewsBy(t *testing.T) {
	for name, c := range map[string]struct {
		t    unix.Timex
		want float64
	}{
		"Sound":           {unix.Timex{Tick: 10_000}, 1},
		"ChronySlewsFast": {unix.Timex{Tick: 10_833}, 1.0833},
		"TickAndFreq":     {unix.Timex{Tick: 9_000, Freq: -500 << 16}, .8995},
		"OffsetInMicros":  {unix.Timex{Tick: 10_000, Status: unix.STA_PLL, Offset: 400_000, Constant: 2}, 1.025},
		"OffsetInNanos": {
			unix.Timex{Tick: 10_000, Status: unix.STA_PLL | unix.STA_NANO, Offset: -400_000_000, Constant: 2}, .975,
		},
		"OffsetWithoutALoop": {unix.Timex{Tick: 10_000, Offset: 400_000}, 1},
	} {
		if got := rateOf(&c.t); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestThisMachineTells needs the machine that runs it to be sound, and the sandbox to answer.
func TestThisMachineTells(t *testing.T) {
	m := ThisMachine()
	if m.Raw == nil {
		t.Fatal("no raw clock")
	}
	begin, raw := time.Now(), m.Raw()
	Nap(time.Millisecond)
	if counted, passed := m.Raw()-raw, time.Since(begin); counted <= 0 || counted > 2*passed+time.Second {
		t.Errorf("the raw clock counted %v in %v", counted, passed)
	}
	if m.Rate != nil && math.Abs(m.Rate()-1) > maxSlew {
		t.Errorf("the kernel says that the clock runs at a rate of %v", m.Rate())
	}
}
