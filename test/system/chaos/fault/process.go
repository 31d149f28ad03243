package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/delaytask/delaytask/test/system/chaos/cgroup"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// on draws a process of the role to hurt. It spares the first worker if there are others, so that one process lives
// through a whole run.
func on(name string, hurt func(context.Context, *World, *fleet.Slot) (Residue, End, error)) Begin {
	return func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
		slots := w.Fleet.Of(name)
		if len(slots) > 1 && name == role.Worker {
			slots = slots[1:]
		}
		if len(slots) == 0 {
			return Residue{}, nil, ErrNothing
		}
		return hurt(ctx, w, slots[r.IntN(len(slots))])
	}
}

func kill(_ context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	life, err := s.Kill()
	return Residue{Target: life}, nil, err
}

// stop is a deploy of one process.
func stop(_ context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	life, err := s.Restart()
	return Residue{Target: life}, nil, err
}

// freeze stops a worker for longer than its leases last.
func freeze(_ context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	life, err := s.Freeze()
	return Residue{Target: life}, thaw(s), err
}

func freezeAll(_ context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	slots := w.Fleet.Of(role.Worker)
	for i, s := range slots {
		if _, err := s.Freeze(); err != nil {
			return Residue{}, thaw(slots[:i+1]...), err
		}
	}
	return Residue{}, thaw(slots...), nil
}

func thaw(slots ...*fleet.Slot) End {
	return func(context.Context) error {
		var errs []error
		for _, s := range slots {
			_, err := s.Thaw()
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

const (
	period     = 100_000 // microseconds
	quota      = period / 20
	starveIn   = 2 * time.Second
	more       = 64 << 10 // bytes
	noMemoryIn = 15 * time.Second
)

// starve leaves a worker a twentieth of a processor. It returns when the worker has wanted more than it got.
func starve(ctx context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	residue := Residue{Target: s.Life(), Saw: fmt.Sprintf("%d%% of a processor", 100*quota/period)}
	group, end, err := confine(cgroup.CPU, s, limit{"cpu.cfs_period_us", period}, limit{"cpu.cfs_quota_us", quota})
	if err == nil && !until(ctx, starveIn, counts(group, "cpu.stat", "nr_throttled")) {
		err = ErrNothing
	}
	return residue, end, err
}

// noMemory limits a worker to little more memory than it has, until the kernel kills it.
func noMemory(ctx context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	residue := Residue{Target: s.Life(), Saw: "killed by the kernel"}
	group, end, err := confine(cgroup.Memory, s, limit{"memory.limit_in_bytes", more})
	if err != nil {
		return residue, end, err
	}
	killed := counts(group, "memory.oom_control", "oom_kill")
	if !until(ctx, noMemoryIn, func() bool { return killed() || s.Life() != residue.Target }) || !killed() {
		return residue, end, ErrNothing
	}
	return residue, end, nil
}

// limit is what is written to a file of a control group.
type limit struct {
	file  string
	value int64
}

// confine moves a process into a control group of its own. Without control groups it returns [ErrNothing].
func confine(controller string, s *fleet.Slot, limits ...limit) (*cgroup.Group, End, error) {
	g, err := cgroup.New(controller, s.Pid())
	if err != nil {
		return nil, nil, errors.Join(ErrNothing, err)
	}
	end := func(context.Context) error { return g.Close() }
	for _, l := range limits {
		if err := g.Set(l.file, l.value); err != nil {
			return g, end, err
		}
	}
	if g.Enter() != nil {
		return g, end, ErrNothing // it has ended by itself
	}
	return g, end, nil
}

func counts(g *cgroup.Group, file, name string) func() bool {
	return func() bool {
		n, err := g.Count(file, name)
		return err == nil && n > 0
	}
}

const (
	fewestFiles = 3 // every process has so many open
	saysSoIn    = 3 * time.Second
)

// noFiles resets the connections of a worker that may open no more files or connections. It returns when the worker has
// logged the error.
func noFiles(ctx context.Context, _ *World, s *fleet.Slot) (Residue, End, error) {
	residue := Residue{Target: s.Life()}
	before, err := os.ReadFile(s.Log())
	if errors.Is(err, fs.ErrNotExist) {
		return residue, nil, ErrNothing // it has just been started
	}
	if err != nil {
		return residue, nil, err
	}
	var were unix.Rlimit
	if unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, nil, &were) != nil {
		return residue, nil, ErrNothing // it has ended by itself
	}
	end := func(context.Context) error {
		if s.Life() == residue.Target {
			_ = unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &were, nil) // it may have ended
		}
		return nil
	}
	none := unix.Rlimit{Cur: fewestFiles, Max: were.Max}
	if unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &none, nil) != nil {
		return residue, end, ErrNothing
	}
	all, _ := s.Proxy.Reset()
	residue.Saw = fmt.Sprintf("%d connections reset", all)
	saysSo := func() bool {
		text, err := os.ReadFile(s.Log())
		return err == nil && bytes.Contains(text[len(before):], []byte(unix.EMFILE.Error()))
	}
	if !until(ctx, saysSoIn, saysSo) {
		return residue, end, ErrNothing
	}
	return residue, end, nil
}

const guests = 20

// crowd lets many workers join at once and leave again, some of them by a power cut.
func crowd(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
	var joined []*fleet.Slot
	end := func(context.Context) error {
		errs := make([]error, len(joined))
		var leaving sync.WaitGroup
		for i, s := range joined {
			leaving.Go(func() {
				if i%4 == 0 {
					_, errs[i] = s.Kill() // the next process takes the place, and stops gracefully
				}
				_, err := s.Leave()
				errs[i] = errors.Join(errs[i], err)
			})
		}
		leaving.Wait()
		return errors.Join(errs...)
	}
	for i := range guests {
		s, err := w.Invite(ctx, fmt.Sprintf("guest%d.%d", r.IntN(1e9), i))
		if err != nil {
			return Residue{}, end, err
		}
		joined = append(joined, s)
	}
	return Residue{Saw: fmt.Sprintf("%d workers join", guests)}, end, nil
}

const (
	burstIn   = 15 * time.Second
	burstLook = 100 * time.Millisecond
	sample    = 100 // of the burst's tasks
)

// burst lets thousands of tasks be due in the same millisecond. It returns when all of them are in the table at once.
func burst(ctx context.Context, w *World, s *fleet.Slot) (Residue, End, error) {
	life := s.Life()
	if !s.Ask(role.BurstSignal) {
		return Residue{}, nil, ErrNothing
	}
	ctx, cancel := context.WithTimeout(ctx, burstIn)
	defer cancel()
	for wait(ctx, burstLook) {
		ids, all, err := dueAtOnce(ctx, w)
		if err == nil && all >= role.Burst { // another fault may have put the server out of reach
			return Residue{IDs: ids, Saw: fmt.Sprintf("%d of %s", all, life)}, nil, nil
		}
	}
	return Residue{}, nil, ErrNothing
}

// dueAtOnce returns some of the tasks that are due in the fullest moment, and how many there are.
func dueAtOnce(ctx context.Context, w *World) (ids []int64, all int, err error) {
	const query = "SELECT id, most.n FROM delay_task_message JOIN (" +
		"SELECT due_time AS at, COUNT(*) AS n FROM delay_task_message WHERE status = 0 GROUP BY due_time" +
		" ORDER BY n DESC LIMIT 1) AS most ON due_time = most.at WHERE status = 0 LIMIT ?"
	rows, err := w.Admin.QueryContext(ctx, query, sample)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id, &all); err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, all, rows.Err()
}
