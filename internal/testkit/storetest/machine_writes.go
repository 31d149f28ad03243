package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

func (m *machine) insert() {
	batch := make([]row.Row, rapid.IntRange(1, 3).Draw(m.T, "rows"))
	after := maps.Clone(m.rows)
	refused := false
	for i := range batch {
		r := row.Row{
			ID: someIDs().Draw(m.T, "id"), Tag: someTags().Draw(m.T, "tag"), Key: someKeys().Draw(m.T, "key"),
			Body: []byte(rapid.StringN(0, 5, -1).Draw(m.T, "body")), TTR: time.Hour, Expected: m.someTime("expected"),
			Priority: rapid.IntRange(-100, 100).Draw(m.T, "priority"),
		}
		if rapid.IntRange(0, 4).Draw(m.T, "has a due time") > 0 {
			r.Due = m.someTime("due")
		}
		batch[i] = r
		_, taken := after[r.ID]
		refused = refused || taken || carrier(after, r) != 0
		after[r.ID] = r
	}
	err := m.store.Insert(m.ctx, nil, batch)
	if refused {
		if row.ClassOf(err) != row.ClassDuplicate || err == nil {
			m.Fatalf("insert: %v, want it refused as a duplicate", err)
		}
		return
	}
	m.must(err)
	m.rows = after
}

func (m *machine) claim() {
	m.claims++
	c := row.Claim{Rows: m.someRefs(), Executor: row.Executor{Process: 3, Claim: m.claims}, IP: 7}
	claimed, err := m.store.Claim(m.ctx, c)
	m.must(err)
	got := make(map[int64]row.Row)
	for _, r := range claimed.Rows {
		got[r.ID] = r
	}
	for _, ref := range c.Rows {
		r, ok := m.at(ref, row.Pending)
		if !ok {
			continue
		}
		r.Status, r.Version, r.Attempt = row.Executing, r.Version+1, r.Attempt+1
		r.Executor, r.IPAddress = c.Executor, c.IP
		r.Due = max(claimed.Reading.Time, r.Due).Add(r.TTR)
		r.Due = m.about(got[ref.ID].Due, r.Due)
		r.Execution = cmp.Or(r.Execution, r.Due.Add(-r.TTR))
		m.rows[ref.ID] = r
		r.Delay, r.Late = 0, "" // are not read back
		m.equal(got[ref.ID], r)
		delete(got, ref.ID)
	}
	if len(got) != 0 || len(claimed.Broken) != 0 {
		m.Fatalf("the claim won %v and broken %v beyond what it may", slices.Collect(maps.Keys(got)), claimed.Broken)
	}
}

func (m *machine) renew() {
	var leases []row.Lease
	for _, ref := range m.someRefs() {
		l := row.Lease{Ref: ref, TTR: time.Duration(rapid.IntRange(1, 3).Draw(m.T, "ttr")) * time.Hour}
		if rapid.Bool().Draw(m.T, "handed over") {
			l.Executor, l.Execution = executor.ForPop(), m.someTime("execution")
			l.Late = m.someReason()
		}
		leases = append(leases, l)
	}
	now := m.now()
	found, err := m.store.Renew(m.ctx, leases)
	m.must(err)
	states := make(map[int64]row.State)
	for _, s := range found {
		states[s.ID] = s
	}
	for _, l := range leases {
		if r, ok := m.at(l.Ref, row.Executing); ok {
			r.Due = m.about(states[l.ID].Due, now.Add(l.TTR))
			r.Executor, r.Execution = cmp.Or(l.Executor, r.Executor), cmp.Or(l.Execution, r.Execution)
			r.Late = cmp.Or(l.Late, r.Late)
			m.rows[l.ID] = r
		}
		r, exists := m.rows[l.ID]
		s, returned := states[l.ID]
		if exists != returned {
			m.Fatalf("renew: task %d exists %v, its state is returned %v", l.ID, exists, returned)
		}
		want := row.State{ID: r.ID, Tag: r.Tag, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
		if exists && s != want {
			m.Fatalf("renew: state %+v, want %+v", s, want)
		}
	}
}

func (m *machine) update() {
	var changes []row.Change
	after := maps.Clone(m.rows)
	refused, applied := false, 0
	used := make(map[string]bool)
	for _, ref := range m.someRefs() {
		old := m.rows[ref.ID]
		if old.Key != "" && used[old.Key] {
			continue // a database may change two rows with one key in any order
		}
		used[old.Key] = true
		c := m.someChange(ref, old.Status)
		changes = append(changes, c)
		r, ok := m.at(ref, c.From)
		renewed := !c.LeaseBy.IsZero() && r.Due > c.LeaseBy
		if !ok || c.LeaseOver && (r.Due.IsZero() || r.Due >= m.base) || renewed {
			continue
		}
		r = changedBy(r, c)
		refused = refused || !r.Status.Final() && carrier(m.rows, r) != 0
		after[ref.ID] = r
		applied++
	}
	got, err := m.store.Update(m.ctx, nil, changes)
	if refused {
		if row.ClassOf(err) != row.ClassDuplicate || err == nil {
			m.Fatalf("update: %v, want it refused as a duplicate", err)
		}
		return
	}
	m.must(err)
	if got != applied {
		m.Fatalf("update: applied %d, want %d", got, applied)
	}
	m.rows = after
}

func (m *machine) someChange(ref row.Ref, status row.Status) row.Change {
	c := row.Change{
		ID: ref.ID, Version: ref.Version, From: status, To: someStatuses().Draw(m.T, "to"), Due: m.someTime("due"),
		Attempt: rapid.IntRange(0, 20).Draw(m.T, "attempt"), CrashCount: rapid.IntRange(0, 5).Draw(m.T, "crashes"),
		ErrorStack: rapid.StringN(0, 5, -1).Draw(m.T, "error"),
		Executor:   rapid.SampledFrom([]row.Executor{{}, {Process: 4, Claim: 1}}).Draw(m.T, "executor"),
	}
	if rapid.IntRange(0, 4).Draw(m.T, "other status") == 0 {
		c.From = someStatuses().Draw(m.T, "from")
	}
	c.LeaseOver = c.From == row.Executing && rapid.Bool().Draw(m.T, "lease over")
	if rapid.IntRange(0, 3).Draw(m.T, "has an end of the lease") == 0 {
		c.LeaseBy = m.someTime("lease by")
	}
	if rapid.Bool().Draw(m.T, "executed") {
		c.Execution, c.Late = m.someTime("execution"), m.someReason()
	}
	if rapid.Bool().Draw(m.T, "rescheduled") {
		c.Expected, c.Delay = m.someTime("expected"), time.Minute
	}
	if rapid.Bool().Draw(m.T, "another body") {
		c.Body = []byte(rapid.StringN(0, 5, -1).Draw(m.T, "body"))
	}
	return c
}

// changedBy returns the row that a change must make of r.
func changedBy(r row.Row, c row.Change) row.Row {
	r.Status, r.Version, r.Due, r.Attempt, r.CrashCount = c.To, r.Version+1, c.Due, c.Attempt, c.CrashCount
	r.Execution, r.ErrorStack, r.Errors = c.Execution, c.ErrorStack, c.Errors
	if c.Late != "" || c.Execution.IsZero() {
		r.Late = c.Late
	}
	if !c.SameExecutor {
		r.Executor = c.Executor
	}
	if !c.Expected.IsZero() {
		r.Expected, r.Delay = c.Expected, c.Delay
	}
	if c.Body != nil {
		r.Body = c.Body
	}
	return r
}

func (m *machine) adopt() {
	refs := m.someRefs()
	m.must(m.store.Adopt(m.ctx, refs))
	for _, ref := range refs {
		if r, ok := m.at(ref, row.Pending); ok && r.Due.IsZero() {
			r.Due = r.Expected
			m.rows[ref.ID] = r
		}
	}
}

func (m *machine) discard() {
	ref := m.someRef()
	b := row.Broken{Ref: ref, Status: someStatuses().Draw(m.T, "status"), Reason: "because"}
	now := m.now()
	n, err := m.store.Discard(m.ctx, []row.Broken{b})
	m.must(err)
	r, ok := m.at(ref, b.Status)
	if discarded := n == 1; discarded != ok {
		m.Errorf("%d rows were discarded, while the guard holds: %t", n, ok)
	}
	if !ok {
		return
	}
	got := m.read()[ref.ID]
	r.Status, r.Version, r.ErrorStack = row.Failed, r.Version+1, got.ErrorStack
	r.Due = m.about(got.Due, now)
	m.rows[ref.ID] = r
}

func (m *machine) purge() {
	status := rapid.SampledFrom([]row.Status{row.Completed, row.Failed, row.Cancelled}).Draw(m.T, "status")
	before := m.someTime("before")
	deleted, _, err := m.store.Purge(m.ctx, status, tagsWith(m.T, m.store, status), before, 100)
	m.must(err)
	old := m.matching(func(r row.Row) bool { return r.Status == status && !r.Due.IsZero() && r.Due < before })
	if deleted != len(old) {
		m.Fatalf("purge: deleted %d, want %d", deleted, len(old))
	}
	for _, r := range old {
		delete(m.rows, r.ID)
	}
}
