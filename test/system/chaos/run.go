package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/test/system/chaos/audit"
	"github.com/delaytask/delaytask/test/system/chaos/evidence"
	"github.com/delaytask/delaytask/test/system/chaos/fault"
	"github.com/delaytask/delaytask/test/system/chaos/ledger"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

const (
	quietFirst = 2 * time.Second // so that every process has tasks when the first fault comes

	// drainLimit is how long a run waits for its last task, beside its patience. The poison task takes longest: five
	// leases, and a rescue after each.
	drainLimit  = time.Minute
	drainLook   = 200 * time.Millisecond
	drainAnswer = 10 * time.Second
)

// play lets faults happen, then waits until everything that was saved has ended.
func (s *stage) play(ctx context.Context) error {
	if err := lateness.Pass(ctx, quietFirst); err != nil {
		return err
	}
	kept := journal.Event{Node: "injector", Kind: journal.Rules, Detail: judge.Encode(rules(s.opts))}
	if err := errors.Join(s.world.Fleet.Note(kept), s.phase(journal.PhaseFaults)); err != nil {
		return err
	}
	injector := &fault.Injector{World: s.world, Kinds: s.kinds(), Seed: s.opts.seed, Pause: pauses}
	faulty, calm := context.WithTimeout(ctx, s.opts.span)
	defer calm()
	if err := injector.Run(faulty); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := errors.Join(s.world.Heal(ctx), s.awaitAll(ctx), s.phase(journal.PhaseDrain)); err != nil {
		return err
	}
	for _, slot := range s.world.Fleet.Of(role.Saver) {
		if _, err := slot.Leave(); err != nil {
			return err
		}
	}
	s.say("the savers have stopped")
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.schedules = s.judgeSchedules(ctx)
	if s.schedules != nil && !errors.Is(s.schedules, errViolated) {
		return s.schedules
	}
	return s.phase(journal.PhaseDone)
}

func (s *stage) phase(name string) error {
	s.say("phase %s", name)
	return s.world.Fleet.Note(journal.Event{Node: "injector", Kind: journal.Phase, Detail: name})
}

// drain returns when nothing is unfinished, or after its limit: the judge sees then what is late or lost.
func (s *stage) drain(ctx context.Context) error {
	overdue := time.After(drainLimit + s.opts.patient)
	for {
		left, err := s.unfinished(ctx)
		// A member of a cluster may be away: the next look is at another one.
		excused := errors.Is(err, context.DeadlineExceeded) || s.world.Members != nil
		switch {
		case err != nil && !excused:
			return fmt.Errorf("look for what is unfinished: %w", err)
		case err == nil && left == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-overdue:
			s.say("not all tasks are finished")
			return nil
		case <-time.After(drainLook):
		}
	}
}

func (s *stage) unfinished(ctx context.Context) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainAnswer)
	defer cancel()
	const count = "SELECT COUNT(*) FROM delay_task_message WHERE status IN (0, 3) AND schedule IS NULL"
	err = s.world.Admin.QueryRowContext(ctx, count).Scan(&left)
	return left, err
}

// pauses keep the lanes as busy as a machine of two cores bears.
var pauses = map[fault.Lane]time.Duration{
	fault.Processes:  1500 * time.Millisecond,
	fault.Statements: 300 * time.Millisecond,
	fault.Networks:   2 * time.Second,
	fault.Databases:  5 * time.Second,
}

func (s *stage) kinds() (kinds []fault.Kind) {
	for _, k := range fault.Kinds {
		if !k.Happens(s.opts.site()) || s.opts.only != "" && !slices.Contains(strings.Split(s.opts.only, ","), k.Name) {
			continue
		}
		if s.opts.lasts > 0 && k.Lasts[1] > 0 {
			k.Lasts = [2]time.Duration{s.opts.lasts, s.opts.lasts}
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// campaign is one run from its first process to its verdict.
func campaign(ctx context.Context, opts options, stdout, stderr io.Writer) (err error) {
	s, err := set(ctx, opts, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err = s.play(ctx); err == nil {
		err = s.conclude(ctx, stdout)
	}
	if err != nil && !errors.Is(err, errViolated) {
		s.unjudged = true
		return fmt.Errorf("%w (the journals and the server's data are in %s)", err, s.dir)
	}
	return err
}

// rules leave room for the queue of a machine that is too slow for the load. The lateness of tasks is a figure of the
// run.
func rules(o options) judge.Rules {
	return judge.Rules{
		MaxAttempts: role.MaxAttempts,
		Quarantine:  5,
		TTR:         role.TTR,
		Settle:      10 * time.Second,
		CaughtUp:    6*time.Second + o.patient,
		Rescue:      5*time.Second + o.patient/2,
		Blur:        time.Millisecond, // one machine, one clock, which the database cuts off at a microsecond
		Commit:      30 * time.Second, // more than a database hangs
		Behind:      o.server.Cluster() && !o.single,
		Killers:     fault.Killers(),
	}
}

// conclude stops the workers, joins all journals with the table, and judges.
func (s *stage) conclude(ctx context.Context, stdout io.Writer) error {
	line := ledger.Line{
		Commit: s.source.Commit, Changed: s.source.Changed, Code: s.source.Code, Old: s.old.commit, Kind: s.opts.kind(),
		Server: s.server, Seed: s.opts.seed, Began: s.begun.UTC().Truncate(time.Second),
		Seconds: int(s.opts.span.Seconds()),
	}
	line.Workers = s.steady()
	for _, slot := range s.world.Fleet.Of(role.Worker) {
		if _, err := slot.Leave(); err != nil {
			return err
		}
	}
	events, err := s.join(ctx)
	if err != nil {
		return err
	}
	v := judge.Judge(events, rules(s.opts))
	line.Count(v, events)
	line.Faults = fault.Count(evidence.New(events))
	if err := errors.Join(v.Show(stdout, shown), json.NewEncoder(stdout).Encode(line)); err != nil {
		return err
	}
	if err := s.record(line); err != nil {
		return err
	}
	if s.forgotten = s.opts.forget || v.Total() == 0 && s.schedules == nil && !s.opts.keep; !s.forgotten {
		s.say("the journals are in %s", s.dir)
	}
	if v.Total() > 0 {
		return errors.Join(fmt.Errorf("%w %d times", errViolated, v.Total()), s.schedules)
	}
	return s.schedules
}

// record appends the line, also for a run with violations, and brings the document up to date.
func (s *stage) record(line ledger.Line) error {
	if !s.opts.record {
		return nil
	}
	return ledger.Runs.Append(s.root, line)
}

// agree is how long the members of a cluster may take to show the same after the last change.
const agree = time.Minute

// join makes one journal of all, and writes it beside them.
func (s *stage) join(ctx context.Context) ([]journal.Event, error) {
	paths, err := s.world.Fleet.Journals()
	if err != nil {
		return nil, err
	}
	said, err := journal.ReadFiles(paths...)
	if err != nil {
		return nil, err
	}
	agreeing, cancel := context.WithTimeout(ctx, agree)
	defer cancel()
	if err := audit.Agree(agreeing, s.members); err != nil {
		return nil, err
	}
	writes, err := audit.Writes(ctx, s.world.Admin)
	if err != nil {
		return nil, err
	}
	rows, err := audit.Rows(ctx, s.world.Admin)
	if err != nil {
		return nil, err
	}
	if err := s.keepsClock(ctx); err != nil {
		return nil, err
	}
	onServersClock(s.clock, said, writes, rows)
	events := journal.Merge(writes, said, rows)
	file, err := os.Create(filepath.Join(s.dir, "all"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return events, journal.WriteTo(file, events)
}

// steady is the memory and the goroutines of the first worker, which no fault ends.
func (s *stage) steady() ledger.Growth {
	workers := s.world.Fleet.Of(role.Worker)
	if len(workers) < 2 {
		return ledger.Growth{}
	}
	return ledger.GrowthOf(workers[0].States())
}

// shown bounds the violations that are printed. The journal holds all of them.
const shown = 10
