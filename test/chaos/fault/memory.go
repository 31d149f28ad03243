package fault

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/test/chaos/cgroup"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// noMemory lets a worker have hardly any memory beside what it has, until the kernel kills it for that.
type noMemory struct{ group *cgroup.Group }

const (
	more       = 64 << 10 // bytes
	noMemoryIn = 15 * time.Second
)

func (f *noMemory) Begin(ctx context.Context, w *World, r *rand.Rand) (scar Scar, err error) {
	s, err := one(w, r, role.Worker)
	if err != nil {
		return scar, err
	}
	scar.Target = s.Life()
	if f.group, err = confine(cgroup.Memory, s.Pid()); err != nil {
		return scar, err
	}
	if err := f.group.Set("memory.limit_in_bytes", more); err != nil {
		return scar, err
	}
	if f.group.Enter() != nil {
		return scar, ErrNothing // it has ended by itself
	}
	killed := func() bool {
		n, err := f.group.Count("memory.oom_control", "oom_kill")
		return err == nil && n > 0
	}
	if !until(ctx, noMemoryIn, func() bool { return killed() || s.Life() != scar.Target }) || !killed() {
		return scar, ErrNothing
	}
	scar.Saw = "killed by the kernel"
	return scar, nil
}

func (f *noMemory) End(context.Context, *World) error {
	if f.group == nil {
		return nil
	}
	return f.group.Close()
}
