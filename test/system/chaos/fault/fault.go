// Package fault is what a chaos run does to its processes, its database and the network between them. Every kind of
// fault is a small type of its own.
package fault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/evidence"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/ledger"
)

type World struct {
	Fleet   *fleet.Fleet
	Server  *dbtest.Supervised // nil: it is a cluster
	Members *dbtest.Cluster    // nil: it is one server
	Primary func() int         // the one of them that is written; nil: all are
	Admin   *sql.DB            // on the run's database, past all proxies; of a cluster any member, with causal reads
	Hand    *sql.DB            // the same without causal reads
	User    string             // the account of the processes
	Disk    string             // where the server's disk is mounted; "": it has none of its own
	Say     func(format string, args ...any)

	// Invite adds a worker that is not one of the run's own.
	Invite func(ctx context.Context, name string) (*fleet.Slot, error)
	// Part cuts a process off from the database, without an error to either side, and Join ends that.
	Part, Join func(context.Context, *fleet.Slot) error
}

// Begin lets a fault happen once. It returns when the fault has begun, with the function that ends it. A fault without
// an end is over at once. The end is called also after an error, to undo what had begun.
type Begin func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error)

// End returns when the fault has ended.
type End func(context.Context) error

type Residue struct {
	Target string  // the process that was hurt; "": the database, or all
	IDs    []int64 // tasks that were touched, as far as it knows
	Saw    string  // for the progress report
}

// ErrNothing is returned by a [Begin] when there was nothing to hurt. Such a fault does not count.
var ErrNothing = errors.New("there was nothing to hurt")

type Kind struct {
	Name   string
	Lane   Lane
	On     Site  // where it can happen
	Weight int   // how often it is drawn, compared with others of its lane
	Lasts  span  // from its begin to its end; zero: it is over at once
	Begin  Begin // nil: processes note it themselves
	Kills  bool  // it ends a process, whatever tasks that runs
	// Shows reports whether the journals show an effect: on a task that was executing, a statement under way.
	Shows func(*evidence.Evidence, evidence.Episode) bool
}

// Lane is a sequence of faults. Faults of different lanes overlap.
type Lane string

const (
	Processes  Lane = "processes"
	Statements Lane = "statements"
	Networks   Lane = "networks"
	Databases  Lane = "databases"
)

type Site string

const (
	Anywhere  Site = ""
	OneServer Site = "one server"
	Members   Site = "a cluster of members"
)

func (k Kind) Happens(on Site) bool { return k.Begin != nil && (k.On == Anywhere || k.On == on) }

// Count returns how often each kind happened, and how often the journals show an effect.
func Count(e *evidence.Evidence) map[string]ledger.Fault {
	shows := map[string]func(*evidence.Evidence, evidence.Episode) bool{}
	for _, k := range Kinds {
		shows[k.Name] = k.Shows
	}
	counts := map[string]ledger.Fault{}
	for _, f := range e.Episodes {
		n := counts[f.Kind]
		n.Injected++
		if show := shows[f.Kind]; show != nil && show(e, f) {
			n.Confirmed++
		}
		counts[f.Kind] = n
	}
	return counts
}

// Injector lets faults happen until ctx ends. All that has begun has ended when it returns.
type Injector struct {
	World *World
	Kinds []Kind
	Seed  uint64
	Pause map[Lane]time.Duration // between two faults of a lane, on average; a lane without one is left out
}

// Run returns an error when a fault could not be ended, or when a fault's code fails. The other lanes end then: there
// will be no verdict.
func (s *Injector) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var wg sync.WaitGroup
	errs := make([]error, len(lanes))
	for i, lane := range lanes {
		kinds := s.of(lane)
		if s.Pause[lane] == 0 || len(kinds) == 0 {
			continue
		}
		wg.Go(func() {
			if errs[i] = s.runLane(ctx, lane, kinds, rand.New(rand.NewPCG(s.Seed, uint64(i)))); errs[i] != nil {
				s.World.Say("the faults end: %v", errs[i])
				end()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

var lanes = []Lane{Processes, Statements, Networks, Databases}

func (s *Injector) of(lane Lane) (kinds []Kind) {
	for _, k := range s.Kinds {
		if k.Lane == lane {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (s *Injector) runLane(ctx context.Context, lane Lane, kinds []Kind, r *rand.Rand) error {
	for n := 0; ; n++ {
		pause := s.Pause[lane]/2 + time.Duration(r.Int64N(int64(s.Pause[lane])))
		if !wait(ctx, pause) {
			return nil
		}
		k := drawn(kinds, r)
		if err := s.happen(ctx, fmt.Sprint(lane, "/", n), k, r); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
}

func drawn(kinds []Kind, r *rand.Rand) Kind {
	all := 0
	for _, k := range kinds {
		all += k.Weight
	}
	n := r.IntN(all)
	for _, k := range kinds {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	panic("unreachable")
}

// beginsIn is how long a fault may take to begin beside others. A fault that takes longer does not count. It is longer
// than the minute that a process gets for its end, because a process that does not end is a failure and no fault.
const beginsIn = 75 * time.Second

// happen lets one fault begin and end, and notes both. The end of ctx shortens the fault, and interrupts no statement:
// that would close the connection that has to end the fault.
func (s *Injector) happen(ctx context.Context, op string, k Kind, r *rand.Rand) error {
	note := func(e journal.Event) error {
		e.Node, e.Op, e.Detail = "injector", op, k.Name
		return s.World.Fleet.Note(e)
	}
	lasts := k.Lasts[0]
	if more := k.Lasts[1] - k.Lasts[0]; more > 0 {
		lasts += time.Duration(r.Int64N(int64(more)))
	}
	if err := note(journal.Event{Kind: journal.FaultBegin}); err != nil {
		return err
	}
	beginning, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginsIn)
	defer cancel()
	residue, end, err := k.Begin(beginning, s.World, r)
	if end == nil {
		end = func(context.Context) error { return nil }
	}
	if err != nil {
		if errors.Is(err, ErrNothing) || gaveWay(err) || beginning.Err() != nil || s.World.degraded(ctx) {
			err = nil
		}
		return errors.Join(err, end(context.WithoutCancel(ctx)),
			note(journal.Event{Kind: journal.FaultEnd, Error: journal.Refused}))
	}
	s.World.Say("%s %s %s", k.Name, residue.Target, residue.Saw)
	wait(ctx, lasts)
	err = end(context.WithoutCancel(ctx))
	return errors.Join(err, note(journal.Event{Kind: journal.FaultEnd, Key: residue.Target, Body: list(residue.IDs)}))
}

// gaveWay reports whether the injector's own statement waited too long for a lock, was chosen to end a deadlock, lost
// against another member of a cluster, or got an id from AUTO_INCREMENT that a process had inserted.
func gaveWay(err error) bool {
	const lockWait, deadlock, commit, certification, duplicate = 1205, 1213, 1180, 3101, 1062
	refused, is := errors.AsType[*mysql.MySQLError](err)
	return is && slices.Contains([]uint16{lockWait, deadlock, commit, certification, duplicate}, refused.Number)
}

func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, " ")
}

// wait returns false when ctx ends before the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	return lateness.Pass(ctx, d) == nil && ctx.Err() == nil
}

const look = 10 * time.Millisecond

// until returns true when something shows, and false when that takes too long or ctx ends before.
func until(ctx context.Context, limit time.Duration, shows func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !shows() {
		if !wait(ctx, look) {
			return shows()
		}
	}
	return true
}
