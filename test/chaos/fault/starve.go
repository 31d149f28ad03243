package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/test/chaos/cgroup"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// starve leaves a worker a twentieth of a processor.
type starve struct{ group *cgroup.Group }

const (
	period   = 100_000 // microseconds
	quota    = period / 20
	starveIn = 2 * time.Second
)

// Begin returns when the worker has wanted more than it got.
func (f *starve) Begin(ctx context.Context, w *World, r *rand.Rand) (scar Scar, err error) {
	s, err := one(w, r, role.Worker)
	if err != nil {
		return scar, err
	}
	scar.Target = s.Life()
	if f.group, err = confine(cgroup.CPU, s.Pid()); err != nil {
		return scar, err
	}
	if err := errors.Join(f.group.Set("cpu.cfs_period_us", period), f.group.Set("cpu.cfs_quota_us", quota)); err != nil {
		return scar, err
	}
	if f.group.Enter() != nil {
		return scar, ErrNothing // it has ended by itself
	}
	if !until(ctx, starveIn, func() bool { return f.throttled() > 0 }) {
		return scar, ErrNothing
	}
	scar.Saw = fmt.Sprintf("%d%% of a processor", 100*quota/period)
	return scar, nil
}

func (f *starve) End(context.Context, *World) error {
	if f.group == nil {
		return nil
	}
	return f.group.Close()
}

// throttled is how often the worker had to wait for its next period.
func (f *starve) throttled() int64 {
	n, err := f.group.Count("cpu.stat", "nr_throttled")
	if err != nil {
		return 0
	}
	return n
}

// confine makes a group for a process. Where that cannot be, there is nothing to hurt.
func confine(controller string, pid int) (*cgroup.Group, error) {
	g, err := cgroup.New(controller, pid)
	if err != nil {
		return nil, errors.Join(ErrNothing, err)
	}
	return g, nil
}
