package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/test/chaos/audit"
	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/fault"
	"github.com/delaytask/delaytask/test/chaos/ledger"
	"github.com/delaytask/delaytask/test/chaos/role"
)

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
	if s.forgotten = s.opts.forget || v.Total() == 0 && !s.opts.keep; !s.forgotten {
		s.say("the journals are in %s", s.dir)
	}
	if v.Total() > 0 {
		return fmt.Errorf("%w %d times", errViolated, v.Total())
	}
	return nil
}

// record appends the line, also that of a run with violations, and brings the document up to date.
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
	onServersClock(s.opts.ahead, said, writes, rows)
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
