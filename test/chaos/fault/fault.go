// Package fault is what a chaos run does to its processes, its database and the network between them. Every kind of
// fault is a small type of its own.
package fault

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/ledger"
)

// World is what can be hurt.
type World struct {
	Fleet   *fleet.Fleet
	Server  *dbtest.Supervised // nil: it is a cluster
	Members *dbtest.Cluster    // nil: it is one server
	Primary func() int         // the one of them that is written; nil: all are
	Admin   *sql.DB            // on the run's database, past all proxies; of a cluster any member, with causal reads
	Hand    *sql.DB            // the same without causal reads
	User    string             // the account of the processes
	Disk    string             // where the server's disk is mounted; "": it has none of its own

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

// Residue is what the injector saw of a fault.
type Residue struct {
	Target string  // the process that was hurt; "": the database, or all
	IDs    []int64 // tasks that were touched, as far as it knows
	Saw    string  // for the progress report
}

// ErrNothing is returned by a [Begin] when there was nothing to hurt. Such a fault does not count.
var ErrNothing = errors.New("there was nothing to hurt")

// Kind is a kind of fault.
type Kind struct {
	Name   string
	Lane   Lane
	On     Site             // where it can happen
	Weight int              // how often it is drawn, compared with others of its lane
	Lasts  [2]time.Duration // from its begin to its end, at least and at most; zero: it is over at once
	Begin  Begin            // nil: processes note it themselves
	Kills  bool             // it ends a process, whatever tasks that runs
	// Shows reports whether the journals show an effect: on a task that was executing, a statement under way.
	Shows func(*evidence.Evidence, evidence.Episode) bool
}

// Lane is a sequence of faults. Faults of different lanes overlap.
type Lane string

// The lanes.
const (
	Processes  Lane = "processes"
	Statements Lane = "statements"
	Networks   Lane = "networks"
	Databases  Lane = "databases"
)

// Site is a kind of database.
type Site string

// The sites.
const (
	Anywhere  Site = ""
	OneServer Site = "one server"
	Members   Site = "a cluster of members"
)

// Happens reports whether the kind can happen on this site.
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
