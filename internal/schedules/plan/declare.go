package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// Set is the schedules that a program declares. The newest revision among the live nodes of an owner says what is
// stored. So during a deployment the old program cannot undo what the new one has stored, and after a rollback, when no
// node of the new one lives, the old one stores its own again.
//
// Of programs without a revision none is known to be the newer one. They store a schedule that is missing. They change
// one only while all live nodes declare the same set, and retire none: an old program that starts again in the midst of
// a deployment undoes nothing.
type Set struct {
	Owner     string   // "" for a program that declares none
	Revision  row.Time // of the program, 0 when it is not known
	Schedules map[string]Declared
}

// Declared is a schedule of a [Set].
type Declared struct {
	Schedule row.Schedule
	Spec     *spec.Spec
}

const (
	assertEvery = time.Minute
	// judgeEvery is how often a node looks at what the other nodes declare, which it knows already.
	judgeEvery = 2 * time.Second
	// agreeFor is how long all live nodes of an owner must have declared the same set before schedules are retired that
	// it lacks. A single new node, on trial, retires nothing.
	agreeFor = time.Minute
	// restFor is how long, for each schedule of the set, a table is left alone that was found to be as the set says.
	// mostRest bounds it. So reads of large sets cost little. A node that declares something else ends the rest.
	restFor  = 50 * time.Millisecond
	mostRest = 10 * time.Minute
	// keepRetired is how long a retired schedule can come back with its state.
	keepRetired = 30 * 24 * time.Hour
	// unknownNodes is how often the nodes are asked for until they are known.
	unknownNodes = 100 * time.Millisecond
)

// Declares returns what the node's row says of the set, the zero value for none.
func (s *Set) Declares(token string) row.Declares {
	if s.Owner == "" {
		return row.Declares{}
	}
	return row.Declares{Token: token, Owner: s.Owner, Revision: s.Revision, Hash: s.hash()}
}

func (s *Set) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.Schedules)) {
		of := s.Schedules[name].Schedule.Hash
		h.Write([]byte(name))
		h.Write(of[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Assert keeps what is stored as the set says, until the context ends.
func (p *Planner) Assert(ctx context.Context, set Set) {
	if set.Owner == "" {
		return
	}
	a := &assertion{Planner: p, set: set, hash: set.hash()}
	if set.Revision.IsZero() {
		p.Log.Info("the program has no revision: its schedules are stored while all live processes of the owner "+
			"declare the same, and none is retired; build it in a Git checkout or set Config.Revision",
			"owner", set.Owner)
	}
	for wait := time.Duration(0); lifecycle.Sleep(ctx, wait); {
		wait = a.turn(ctx)
	}
}

// assertion is what a node knows of the other nodes of its owner.
type assertion struct {
	*Planner
	set    Set
	hash   string
	agreed row.Time  // since when all of them declare this set; zero: they do not
	mature bool      // the table was compared since they have agreed for a minute
	next   time.Time // when the table is compared again, unless the nodes begin to agree
	rests  time.Time // until when the table is left alone
}

// turn looks at the other nodes, compares the table with the set when that is due, and returns when to look again.
func (a *assertion) turn(ctx context.Context) time.Duration {
	nodes, now, known := a.Nodes()
	if !known {
		return unknownNodes
	}
	compares := !time.Now().Before(a.next)
	leads, agree := a.judge(nodes, compares)
	switch {
	case !agree:
		a.agreed, a.mature, a.rests = 0, false, time.Time{}
	case a.agreed.IsZero():
		a.agreed = now
	}
	matures := agree && !a.mature && now.Sub(a.agreed) >= agreeFor
	if !compares && !matures {
		return judgeEvery
	}
	a.mature = a.mature || matures
	a.next = time.Now().Add(a.compare(ctx, now, leads, agree))
	return judgeEvery
}

// compare compares the table with the set, if it is this node's turn, and returns when that is to be done again.
func (a *assertion) compare(ctx context.Context, now row.Time, leads, agree bool) time.Duration {
	if !leads || time.Now().Before(a.rests) || len(a.set.Schedules) == 0 && a.idle() {
		return assertEvery
	}
	unknown := a.set.Revision.IsZero()
	retire := agree && !unknown && now.Sub(a.agreed) >= agreeFor
	same, err := a.apply(ctx, now, agree || !unknown, retire)
	if err != nil && ctx.Err() == nil {
		a.Failed("storing the schedules that this program declares", err)
		return assertEvery / 10
	}
	if unknown && !agree { // until the old nodes of a deployment are gone
		return assertEvery / 10
	}
	if same && (retire || unknown) {
		a.rests = time.Now().Add(min(time.Duration(len(a.set.Schedules))*restFor, mostRest))
	}
	return lifecycle.Jitter(assertEvery, 0.1)
}

// idle reports whether no schedule needs attention, so that there is nothing to retire.
func (p *Planner) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.look.IsZero()
}

// judge reports whether this node may store its set, and whether all live nodes of the owner declare the same. It may
// say that they contradict each other.
func (a *assertion) judge(nodes []row.Node, say bool) (leads, agree bool) {
	leads, agree = true, true
	for _, n := range nodes {
		d := n.Declares
		switch {
		case d.Owner != a.set.Owner:
		case d.Revision > a.set.Revision:
			leads, agree = false, false
		case d.Revision < a.set.Revision, d.Revision.IsZero() && d.Hash != a.hash:
			agree = false
		case d.Hash != a.hash && !say:
			leads, agree = false, false
		case d.Hash != a.hash:
			a.Log.Error("two nodes of one revision declare different schedules, and neither set is stored; give each "+
				"build a revision of its own", "owner", d.Owner, "other", n.Name, "revision", d.Revision.Std())
			leads, agree = false, false
		}
	}
	return leads, agree
}

// apply stores what is missing, may change what differs, and retire what the set lacks. It reports whether there was
// nothing to do.
func (a *assertion) apply(ctx context.Context, now row.Time, change, retire bool) (same bool, err error) {
	stored, err := a.stored(ctx)
	if err != nil {
		return false, err
	}
	var fresh []Declared
	for _, name := range slices.Sorted(maps.Keys(a.set.Schedules)) {
		if _, there := stored[name]; !there {
			fresh = append(fresh, a.set.Schedules[name])
		}
	}
	var changed, gone []row.Schedule
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		s := stored[name]
		switch d, declared := a.set.Schedules[name]; {
		case declared && change && (s.Hash != d.Schedule.Hash || s.State.Retired()):
			changed = append(changed, s)
		case declared || !retire:
		case !s.State.Retired() || now.Sub(s.Updated) > keepRetired:
			gone = append(gone, s)
		}
	}
	same = len(fresh)+len(changed)+len(gone) == 0
	return same, errors.Join(a.create(ctx, fresh, now), a.edit(ctx, changed), a.retire(ctx, gone))
}

// stored reads the schedules of the owner by name.
func (a *assertion) stored(ctx context.Context) (map[string]row.Schedule, error) {
	stored := map[string]row.Schedule{}
	for f := (row.ScheduleFilter{Owner: a.set.Owner, Limit: listed}); ; {
		found, err := a.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			stored[s.Name] = s
		}
		if len(found) < listed {
			return stored, nil
		}
		f.AfterName = found[len(found)-1].Name
	}
}

func (a *assertion) create(ctx context.Context, fresh []Declared, now row.Time) error {
	for some := range slices.Chunk(fresh, perTransaction) {
		states := make([]decide.State, len(some))
		for i, d := range some {
			s := a.owned(d)
			s.ID = a.NextID()
			states[i] = a.state(s, d.Spec, now, nil)
		}
		if err := a.addForeign(ctx, states, ""); err != nil {
			return err
		}
		decisions := make([]row.Decision, len(some))
		for i := range states {
			decisions[i] = decide.New(states[i])
		}
		a.store(ctx, decisions)
	}
	return a.reportForeign(ctx, fresh)
}

// reportForeign says of schedules that could not be stored that another owner has their names.
func (a *assertion) reportForeign(ctx context.Context, fresh []Declared) error {
	for some := range slices.Chunk(fresh, listed) {
		names := make([]string, len(some))
		for i, d := range some {
			names[i] = d.Schedule.Name
		}
		found, err := a.List(ctx, row.ScheduleFilter{Names: names, Limit: len(names)})
		if err != nil {
			return err
		}
		foreign, _ := batch.Split(found, func(s row.Schedule) bool { return s.Owner != a.set.Owner })
		for _, s := range foreign {
			a.Log.Error("a schedule that this program declares is another owner's; give it another name, or delete "+
				"that one", "schedule", s.Name, "owner", a.set.Owner, "other", s.Owner)
		}
	}
	return nil
}

// owned is the schedule of the set as it is to be stored.
func (a *assertion) owned(d Declared) row.Schedule {
	s := d.Schedule
	s.Owner, s.Revision = a.set.Owner, a.set.Revision
	return s
}

func (a *assertion) edit(ctx context.Context, changed []row.Schedule) error {
	_, err := a.each(ctx, changed, func(st decide.State) (row.Decision, error) {
		d := a.set.Schedules[st.Schedule.Name]
		return decide.Edit(st, a.owned(d), d.Spec)
	})
	return err
}

// retire retires schedules, and deletes those that are retired.
func (a *assertion) retire(ctx context.Context, gone []row.Schedule) error {
	stored, err := a.each(ctx, gone, func(st decide.State) (row.Decision, error) {
		if st.Schedule.State.Retired() {
			return row.Decision{Write: row.WriteDelete, Schedule: st.Schedule}, nil
		}
		return decide.Retire(st, "its program declares it no more")
	})
	for i := range stored {
		if stored[i].Write == row.WriteDelete {
			continue
		}
		a.Log.Warn("a schedule is retired, because its program declares it no more; it comes back with its state when "+
			"it is declared within 30 days", "schedule", stored[i].Schedule.Name, "owner", a.set.Owner)
	}
	return err
}

// each stores what change decides about the schedules, many in a transaction, and returns what is stored.
func (a *assertion) each(
	ctx context.Context, all []row.Schedule, change func(decide.State) (row.Decision, error),
) (stored []row.Decision, err error) {
	for some := range slices.Chunk(all, perTransaction) {
		states, err := a.states(ctx, some)
		if err != nil {
			return stored, err
		}
		var decisions []row.Decision
		for _, st := range states {
			if err := a.addHistory(ctx, &st); err != nil {
				return stored, err
			}
			d, err := change(st)
			if err != nil {
				return stored, err
			}
			decisions = append(decisions, d)
		}
		stored = append(stored, a.store(ctx, decisions)...)
	}
	return stored, nil
}
