package usage

import (
	"errors"
	"runtime"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestWhatAProcessNeeds(t *testing.T) {
	before, err := CPU()
	if errors.Is(err, errors.ErrUnsupported) && runtime.GOOS != "linux" {
		t.Skip(err)
	}
	servertest.OK(t, err)
	const size = 64 << 20
	held := make([]byte, size)
	for i := range held {
		held[i] = byte(i)
	}
	now, peak, err := Memory()
	if err != nil || now < size || peak < now {
		t.Errorf("resident memory with %d bytes in use: now %d, peak %d, %v", len(held), now, peak, err)
	}
	if after, err := CPU(); err != nil || after <= before {
		t.Errorf("CPU time went from %v to %v, %v", before, after, err)
	}
}

func TestStolenTimeIsAPartOfAll(t *testing.T) {
	stolen, all, err := Stolen()
	if errors.Is(err, errors.ErrUnsupported) && runtime.GOOS != "linux" {
		t.Skip(err)
	}
	if err != nil || stolen < 0 || all <= stolen {
		t.Fatalf("%d of %d ticks are stolen, %v", stolen, all, err)
	}
	for {
		later, more, err := Stolen()
		if err != nil || later < stolen || more < all {
			t.Fatalf("%d of %d ticks, and later %d of %d, %v", stolen, all, later, more, err)
		}
		if more > all {
			return
		}
	}
}
