package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// ThisMachine returns what this machine tells.
func ThisMachine() Machine {
	var m Machine
	if _, ok := raw(); ok {
		m.Raw = func() time.Duration { t, _ := raw(); return t }
	}
	if _, ok := rate(); ok {
		m.Rate = func() float64 { r, _ := rate(); return r }
	}
	return m
}

func raw() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t)
	return time.Duration(t.Nano()), err == nil
}

// rate asks the kernel, and sets nothing. A sandbox may refuse the question.
func rate() (float64, bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return 1, false
	}
	return rateOf(&t), true
}

// What [unix.Timex] counts in.
const (
	soundTick = 1e4         // microseconds of the clock for each of a hundred ticks in a second
	scaledPPM = 1e6 * 65536 // the frequency is in parts per million, shifted by 16 bits
	shiftPLL  = 2
)

// rateOf adds up what slews the clock: the length of a tick, the frequency, and the part of the offset that the
// kernel's loop makes up for in a second.
func rateOf(t *unix.Timex) float64 {
	offset := float64(t.Offset) / 1e6
	if t.Status&unix.STA_NANO != 0 {
		offset /= 1e3
	}
	if t.Status&unix.STA_PLL == 0 {
		offset = 0
	}
	return float64(t.Tick)/soundTick + float64(t.Freq)/scaledPPM + offset/math.Exp2(shiftPLL+float64(t.Constant))
}
