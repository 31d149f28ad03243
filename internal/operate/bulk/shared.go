package bulk

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// ErrUnknown is returned for the id of no run.
var ErrUnknown = errors.New("there is no such bulk change: its entry was deleted, or it is not in the audit log and " +
	"another process alone knows it; ask the one that answered with its id")

// ErrUntold is returned by StopAny for a run whose process does not tell how far it is.
var ErrUntold = errors.New("the process of the bulk change does not tell that it is at it: it is of an older " +
	"version, or has just begun; try again in a second, or stop it where it was started")

// Told is the text of an error as an entry of the audit log has it. It names no host and no user of the database.
type Told string

func (t Told) Error() string { return string(t) }

const (
	mostListed = 100
	mostLooked = 500 // entries of each action, among which the listed ones are
)

// actions are those whose entries are runs.
var actions = []audit.Action{audit.CancelAll, audit.RetryAll}

// entryID returns the id of the entry of the run. A run that is not recorded has none.
func entryID(id string) (int64, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	return n, err == nil && n > 0 && n < math.MaxInt64 && strconv.FormatInt(n, 10) == id
}

// Find returns the run with the id, whichever process runs it. It returns [ErrUnknown], or an error of the database.
func (r *Runs) Find(ctx context.Context, s audit.Store, id string) (State, error) {
	own, known := r.Get(id)
	n, recorded := entryID(id)
	if known && own.Alone {
		return own, nil
	}
	if !recorded {
		return State{}, ErrUnknown
	}
	entries, err := s.AuditEntries(ctx, "", n+1, 1)
	is := err == nil && len(entries) == 1 && entries[0].ID == n &&
		slices.Contains(actions, audit.Action(entries[0].Action))
	switch {
	case is:
		states, err := r.states(ctx, s, entries)
		if err != nil {
			return State{}, err
		}
		return states[0], nil
	case known:
		return own, nil
	case err == nil:
		return State{}, ErrUnknown
	default:
		return State{}, err
	}
}

// List returns the newest 100 runs of all processes that are to be shown, the newest first. It looks at the newest 500
// of each action.
func (r *Runs) List(ctx context.Context, s audit.Store, shown func(*State) bool) (list []State, err error) {
	var entries []row.AuditEntry
	for _, action := range actions {
		found, err := s.AuditEntries(ctx, string(action), math.MaxInt64, mostLooked)
		if err != nil {
			return nil, err
		}
		entries = append(entries, found...)
	}
	if list, err = r.states(ctx, s, entries); err != nil {
		return nil, err
	}
	for _, own := range r.All() {
		is := func(s State) bool { return s.ID == own.ID }
		if (own.Alone || own.Ended.IsZero()) && !slices.ContainsFunc(list, is) {
			list = append(list, own)
		}
	}
	list = slices.DeleteFunc(list, func(s State) bool { return !shown(&s) })
	slices.SortStableFunc(list, func(a, b State) int { return b.Began.Compare(a.Began) })
	return list[:min(len(list), mostListed)], nil
}

// states returns the runs of the entries. One that this process is at, it knows better.
func (r *Runs) states(ctx context.Context, s audit.Store, entries []row.AuditEntry) ([]State, error) {
	var now time.Time
	states := make([]State, len(entries))
	for i := range entries {
		e := &entries[i]
		if audit.Open(e) && now.IsZero() {
			reading, err := s.Now(ctx)
			if err != nil {
				return nil, err
			}
			now = reading.Time.Std()
		}
		states[i] = stateOf(e, now)
		if own, known := r.Get(states[i].ID); known && states[i].Ended.IsZero() {
			states[i].About = own.About
			states[i].Done, states[i].Outcome = own.Done, own.Outcome
			states[i].Ended, states[i].Err = own.Ended, own.Err
			states[i].Stopping = own.Ended.IsZero() && (own.Stopping || states[i].Stopping)
		}
	}
	return states, nil
}

func stateOf(e *row.AuditEntry, now time.Time) State {
	s := State{
		ID: strconv.FormatInt(e.ID, 10), Began: e.Begin.Std(), Ended: e.End.Std(), Done: int(e.Tasks),
		Seen: e.Seen.Std(), Detail: e.Detail,
	}
	s.read(e.Bulk)
	s.Verb, s.Who, s.Filter.Tag = strings.TrimPrefix(e.Action, "bulk."), e.Who, cmp.Or(s.Filter.Tag, e.Tag)
	if e.Error != "" {
		s.Err = Told(e.Error)
	}
	switch e.Outcome {
	case "":
		s.Stopping = e.Stop != 0
		switch {
		case e.Seen == 0:
			s.Outcome = Untold
		case audit.Lost(e, now):
			s.Outcome = Lost
		default:
			s.Outcome = Running
		}
	case report.AuditDone:
		s.Outcome = Done
	case report.AuditStopped:
		s.Outcome = Stopped
	default:
		s.Outcome = Failed
	}
	return s
}

// StopAny ends a run that [Runs.Find] has returned, after the batch that it is at. One of another process learns of it
// within about a second. A run that has ended stays as it is. StopAny returns [ErrUntold], or an error of the database.
func (r *Runs) StopAny(ctx context.Context, s audit.Store, run *State) error {
	n, recorded := entryID(run.ID)
	switch {
	case r.Stop(run.ID), !recorded, !run.Ended.IsZero():
		return nil
	case run.Outcome == Untold:
		return ErrUntold
	default:
		return s.StopAudit(ctx, n)
	}
}
