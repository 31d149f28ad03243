package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// noFiles resets the connections of a worker that may open no file any more, nor another connection.
type noFiles struct {
	hurt *fleet.Slot
	life string
	were unix.Rlimit
}

const (
	fewestFiles = 3 // every process has so many open, so none is left
	saysSoIn    = 3 * time.Second
)

// Begin returns when the worker has said that it wanted more.
func (f *noFiles) Begin(ctx context.Context, w *World, r *rand.Rand) (scar Scar, err error) {
	s, err := one(w, r, role.Worker)
	if err != nil {
		return scar, err
	}
	scar.Target = s.Life()
	before, err := os.ReadFile(s.Log())
	if errors.Is(err, fs.ErrNotExist) {
		return scar, ErrNothing // it has just been started
	}
	if err != nil {
		return scar, err
	}
	if unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, nil, &f.were) != nil {
		return scar, ErrNothing // it has ended by itself
	}
	f.hurt, f.life = s, scar.Target
	none := unix.Rlimit{Cur: fewestFiles, Max: f.were.Max}
	if unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &none, nil) != nil {
		return scar, ErrNothing
	}
	all, _ := s.Proxy.Reset()
	saysSo := func() bool {
		text, err := os.ReadFile(s.Log())
		return err == nil && bytes.Contains(text[len(before):], []byte(unix.EMFILE.Error()))
	}
	if !until(ctx, saysSoIn, saysSo) {
		return scar, ErrNothing
	}
	scar.Saw = fmt.Sprintf("%d connections reset", all)
	return scar, nil
}

func (f *noFiles) End(context.Context, *World) error {
	if f.hurt == nil || f.hurt.Life() != f.life {
		return nil
	}
	_ = unix.Prlimit(f.hurt.Pid(), unix.RLIMIT_NOFILE, &f.were, nil) // it may have ended
	return nil
}
