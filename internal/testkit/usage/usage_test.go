package usage

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

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
	after, err := CPU()
	if err != nil || after <= before {
		t.Errorf("CPU time went from %v to %v, %v", before, after, err)
	}
	// It is counted in coarser steps.
	if same, err := CPUOf(os.Getpid()); err != nil || same < after-time.Second || same > after+time.Second {
		t.Errorf("CPU time of this process is %v, and by its pid %v, %v", after, same, err)
	}
	if idle, err := Idle(); err != nil || idle <= 0 {
		t.Errorf("the machine was idle for %v, %v", idle, err)
	}
	if pid, err := ServerPID("/nowhere/mysqld.pid"); err == nil {
		t.Errorf("a file that no server has written is of process %d", pid)
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
