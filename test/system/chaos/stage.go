package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/lab/record"
	"github.com/delaytask/delaytask/test/system/chaos/fault"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/ledger"
	"github.com/delaytask/delaytask/test/system/chaos/netns"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

type stage struct {
	opts     options
	progress io.Writer
	root     string // of the repository
	dir      string
	begun    time.Time
	source   record.Source
	server   string        // with its version
	clock    role.Clock    // the server's
	cfg      *mysql.Config // how processes reach the run's database, except for the proxy between
	addrs    []string      // of the server, or of the members of a cluster
	members  []*sql.DB     // of a cluster
	primary  atomic.Int64  // which of these is written, where one alone is
	net      *netns.Net    // nil: all processes live in the machine's network
	world    *fault.World
	closing  []func() error

	schedules error // which of their laws are broken

	forgotten bool // the journals are removed
	unjudged  bool // the server's data and log are kept

	old older // every other worker's program, if the run asks for one
}

// set makes a server, a database with its audit, and all the processes.
func set(ctx context.Context, opts options, progress io.Writer) (s *stage, err error) {
	s = &stage{opts: opts, progress: progress, begun: time.Now(), world: &fault.World{}}
	s.world.Say = s.say
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.root, err = record.Root(ctx); err == nil {
		s.source, err = ledger.Runs.Source(ctx, s.root, ledger.Judged)
	}
	if err != nil && opts.record {
		return s, err // a run that is not recorded needs no repository
	}
	if opts.record && s.source.Changed && !opts.force {
		return s, errors.New("the tree has changes: commit them, or use -force, which the record tells")
	}
	if s.dir, err = os.MkdirTemp(opts.in, "delaytask-chaos-"); err != nil {
		return s, err
	}
	for _, step := range []func(context.Context) error{s.setOld, s.setServer, s.setNetwork} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	own, err := journal.Create(filepath.Join(s.dir, "injector.journal"))
	if err != nil {
		return s, err
	}
	s.later(own.Close)
	s.world.Fleet = &fleet.Fleet{Dir: s.dir, Journal: own}
	s.follow(ctx)
	for i := range opts.workers {
		o := role.Order{Role: role.Worker, Tags: role.Tags}
		if i == 0 && opts.workers > 1 {
			o.Tags = role.Harmless
		}
		if i%2 == 1 {
			o.Program = s.old.program
		}
		if _, err := s.add(ctx, fmt.Sprint("worker", i), o); err != nil {
			return s, err
		}
	}
	for i := range opts.savers {
		o := role.Order{Role: role.Saver, Rate: opts.rate / opts.savers}
		if i == 0 && opts.only == "" {
			o.DeathEvery, o.Poisons = deathEvery, 1
		}
		if _, err := s.add(ctx, fmt.Sprint("saver", i), o); err != nil {
			return s, err
		}
	}
	return s, s.awaitAll(ctx)
}

const (
	deathEvery = 4 * time.Second
	beginsIn   = 2 * time.Minute // on a machine that is busy with other things
)

func (s *stage) awaitAll(ctx context.Context) error {
	for _, r := range []string{role.Worker, role.Saver} {
		for _, slot := range s.world.Fleet.Of(r) {
			if err := slot.Await(ctx, beginsIn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) later(f func() error) { s.closing = append(s.closing, f) }

// close ends what is left, the last first.
func (s *stage) close() error {
	var errs []error
	if s.world.Fleet != nil {
		errs = append(errs, s.world.Fleet.End())
	}
	if s.unjudged {
		errs = append(errs, s.spare(filepath.Join(s.dir, "server")))
	}
	for i := len(s.closing) - 1; i >= 0; i-- {
		errs = append(errs, s.closing[i]())
	}
	s.closing = nil
	if s.forgotten {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *stage) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.progress, "%7.2fs %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// older is this program as it was.
type older struct{ commit, program string }

// setOld builds that program from its commit, if the run asks for one.
func (s *stage) setOld(ctx context.Context) (err error) {
	if s.opts.old == "" {
		return nil
	}
	find := exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--short=12", s.opts.old+"^{commit}")
	if s.old.commit, err = output(find); err != nil {
		return err
	}
	tree := filepath.Join(s.dir, "old")
	s.old.program = tree + ".chaos"
	s.later(func() error { return os.RemoveAll(s.old.program) })
	defer os.RemoveAll(tree)
	const script = `mkdir "$1" && git -C "$2" archive "$0" | tar -x -C "$1" &&
		go -C "$1/test/system" build -o "$1.chaos" ./chaos`
	_, err = output(exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script, s.old.commit, tree, s.root))
	return err
}

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("build an older program: %s: %w: %s", cmd, err, said)
	}
	return said, nil
}
