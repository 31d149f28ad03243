package scanner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// leases is a table of executing rows.
type leases struct {
	rows    map[int64]*row.Row
	broken  []row.Broken
	locked  map[int64]bool
	refused map[int64]bool // the database takes no change of these
	lost    bool           // replies of updates get lost on their way
	read    int            // reads of leases that are over

	updates int
	rescued []row.Row
}

func newLeases(n int) *leases {
	l := &leases{rows: map[int64]*row.Row{}, locked: map[int64]bool{}, refused: map[int64]bool{}}
	for i := range n {
		id := int64(i + 1)
		l.rows[id] = &row.Row{
			ID: id, Version: 7, Status: row.Executing, Attempt: 1, Executor: row.Executor{Process: 9, Claim: 1},
			Due: row.At(time.Now().Add(-time.Minute)) + row.Time(i),
		}
	}
	return l
}

func (l *leases) Expired(_ context.Context, limit int) ([]row.Row, []row.Broken, error) {
	l.read++
	var rows []row.Row
	for _, r := range l.rows {
		if r.Status == row.Executing && r.Due < row.At(time.Now()) {
			rows = append(rows, *r)
		}
	}
	slices.SortFunc(rows, func(a, b row.Row) int { return cmp.Compare(a.Due, b.Due) })
	return rows[:min(len(rows), limit)], l.broken, nil
}

func (l *leases) States(_ context.Context, ids []int64) ([]row.State, error) {
	var states []row.State
	for _, id := range ids {
		if r, ok := l.rows[id]; ok {
			states = append(states, row.State{ID: id, Version: r.Version, Status: r.Status, Due: r.Due,
				Executor: r.Executor})
		}
	}
	return states, nil
}

func (l *leases) Locked(_ context.Context, ids []int64) ([]int64, error) {
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return !l.locked[id] }), nil
}

func (l *leases) Discard(context.Context, []row.Broken) error {
	l.broken = nil
	return nil
}

func (l *leases) update(_ context.Context, changes []row.Change) (applied int, err error) {
	l.updates++
	for _, c := range changes {
		if l.locked[c.ID] {
			return 0, &row.Error{Class: row.ClassLocked, Op: "update", Err: errors.New("lock wait")}
		}
		if l.refused[c.ID] {
			return 0, &row.Error{Class: row.ClassCaller, Op: "update", Err: errors.New("refused")}
		}
	}
	for _, c := range changes {
		r, ok := l.rows[c.ID]
		if ok && r.Version == c.Version && r.Status == c.From && (!c.LeaseOver || r.Due < row.At(time.Now())) {
			r.Status, r.Version, r.Due, r.Executor = c.To, r.Version+1, c.Due, c.Executor
			r.CrashCount, r.Attempt = c.CrashCount, c.Attempt
			applied++
		}
	}
	if l.lost {
		return 0, &row.Error{Class: row.ClassUnknown, Op: "update", Err: errors.New("connection lost")}
	}
	return applied, nil
}

func (l *leases) pass() *Rescue {
	return &Rescue{
		Leases: l, Update: l.update, Held: func() bool { return false },
		Now:     func() (row.Time, bool) { return row.At(time.Now()), true },
		Rescued: func(rows []row.Row) { l.rescued = append(l.rescued, rows...) },

		Quarantine: 5, Page: 20, Log: slog.New(slog.DiscardHandler),
	}
}

func (l *leases) count(s row.Status) (n int) {
	for _, r := range l.rows {
		if r.Status == s {
			n++
		}
	}
	return n
}

func TestRescueEndsEveryLeaseThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(105)
		l.rows[1000] = &row.Row{ID: 1000, Status: row.Executing, Due: row.At(time.Now().Add(time.Second))}
		mustPass(t, l.pass().Pass)
		if l.count(row.Pending) != 105 || l.count(row.Executing) != 1 || len(l.rescued) != 105 {
			t.Fatalf("%d pending, %d executing, %d reported", l.count(row.Pending), l.count(row.Executing),
				len(l.rescued))
		}
		for _, r := range l.rescued {
			if r.Version != 8 || r.Status != row.Pending || r.Attempt != 0 || r.CrashCount != 1 ||
				r.Due != row.At(time.Now()) {
				t.Fatalf("reported %+v", r)
			}
		}
	})
}

func TestRescueReportsOnlyWhatItChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(10)
		p := l.pass()
		p.Update = func(ctx context.Context, changes []row.Change) (int, error) {
			// Between the read and the write an executor settles, one renews, one row is deleted, one cancelled, and
			// one rescued by a node whose clock is a moment ahead.
			l.rows[1].Status, l.rows[1].Version = row.Pending, 8 // tried again later, by its own executor
			l.rows[2].Due = row.At(time.Now().Add(time.Minute))
			delete(l.rows, 3)
			l.rows[4].Status, l.rows[4].Version = row.Cancelled, 8
			r := l.rows[5]
			r.Status, r.Version, r.Due = row.Pending, 8, changes[0].Due.Add(40*time.Millisecond)
			r.Executor = row.Executor{}
			return l.update(ctx, changes)
		}
		mustPass(t, p.Pass)
		var reported []int64
		for _, r := range l.rescued {
			reported = append(reported, r.ID)
		}
		if !slices.Equal(reported, []int64{6, 7, 8, 9, 10}) {
			t.Fatalf("reported %v", reported)
		}
	})
}

func TestRescueFindsOutWhatALostReplySaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(10)
		l.lost = true
		if err := l.pass().Pass(t.Context()); row.ClassOf(err) != row.ClassUnknown || err == nil {
			t.Fatalf("Pass: %v, want the lost connection", err)
		}
		if len(l.rescued) != 10 {
			t.Fatalf("%d rows reported, want the 10 that are to be seen", len(l.rescued))
		}
	})
}

func TestALockedRowHoldsUpNoOtherRescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(100)
		for id := range int64(30) { // more than a page, and the oldest
			l.locked[id+1] = true
		}
		p := l.pass()
		for range 3 {
			mustPass(t, p.Pass)
		}
		if l.count(row.Pending) != 70 || l.updates > 7 {
			t.Fatalf("%d rescued with %d statements, want 70", l.count(row.Pending), l.updates)
		}
		before := l.updates
		mustPass(t, p.Pass)
		if l.updates != before {
			t.Error("locked rows are asked for again at once")
		}
		clear(l.locked)
		mustPass(t, p.Pass)
		if l.count(row.Pending) != 100 {
			t.Fatalf("%d rescued by the first pass after the locks ended, want 100", l.count(row.Pending))
		}
	})
}

func TestARefusedRowHoldsUpNoOtherRescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(100)
		l.refused[3], l.refused[50] = true, true
		p := l.pass()
		for range 4 {
			if err := p.Pass(t.Context()); err != nil && row.ClassOf(err) != row.ClassCaller {
				t.Fatal(err)
			}
		}
		if l.count(row.Pending) != 98 {
			t.Fatalf("%d rescued, want 98", l.count(row.Pending))
		}
		clear(l.refused)
		time.Sleep(refusedFor)
		mustPass(t, p.Pass)
		if l.count(row.Pending) != 100 {
			t.Fatalf("%d rescued after nothing was refused any more, want 100", l.count(row.Pending))
		}
	})
}

func TestRescueDiscardsWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(5)
		l.broken = []row.Broken{{Ref: row.Ref{ID: 77, Version: 1}, Status: row.Executing,
			Reason: "headers are not JSON"}}
		mustPass(t, l.pass().Pass)
		if l.broken != nil || l.count(row.Pending) != 5 {
			t.Fatalf("broken %v, %d rescued", l.broken, l.count(row.Pending))
		}
	})
}

// TestRescueIsHeldByWhatItsReadHasMet lets the read be answered after an outage that began when nothing held the
// rescue.
func TestRescueIsHeldByWhatItsReadHasMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases(5)
		p := l.pass()
		p.Held = func() bool { return l.read > 0 }
		mustPass(t, p.Pass)
		blind := l.pass()
		blind.Now = func() (row.Time, bool) { return 0, false }
		mustPass(t, blind.Pass)
		if l.read != 1 || l.count(row.Executing) != 5 {
			t.Errorf("%d leases are left after %d reads, want 5 after 1", l.count(row.Executing), l.read)
		}
	})
}
