package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Claim implements [store.Leaser].
func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	ids := row.IDsOf(c.Rows, refID)
	if err := s.enterRows(ctx, "claim tasks", ids, landings(ids, row.Executing)...); err != nil {
		return row.Claimed{}, err
	}
	defer s.mu.Unlock()
	var won page
	var unread []row.Row
	bytes, now := 0, s.now()
	for _, ref := range sortedByID(c.Rows) {
		r, ok := s.at(ref, row.Pending)
		if ok {
			s.take(&r, c, now)
		}
		// The winner is read from the row, as in a database: a claim that is sent twice returns what the first did.
		if r.Status == row.Executing && r.Executor == c.Executor {
			r.Delay, r.Created, r.Updated, r.Late = 0, 0, 0, "" // the SQL store does not read them
			if bytes += len(r.Body); c.Bytes > 0 && bytes > c.Bytes && len(won.rows) > 0 {
				r.Body = nil
				unread = append(unread, r)
				continue
			}
			won.add(r, true)
		}
	}
	reading := row.Reading{Time: now, Server: s.server}
	return row.Claimed{Rows: won.rows, Unread: unread, Broken: won.broken, Reading: reading}, nil
}

func (s *Store) take(r *row.Row, c row.Claim, now row.Time) {
	r.Status = row.Executing
	r.Version++
	r.Attempt++
	r.Executor = c.Executor
	r.IPAddress = c.IP
	begin := max(now, r.Due)
	r.Execution = cmp.Or(r.Execution, begin)
	r.Due = begin.Add(max(r.TTR, row.MinTTR))
	s.store(*r, now)
}

// store replaces a row, which has its key already.
func (s *Store) store(r row.Row, now row.Time) {
	r.Updated = now
	s.tasks.put(r)
	s.notify(r.ID)
}

// Renew implements [store.Leaser].
func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	ids := row.IDsOf(leases, func(l row.Lease) int64 { return l.ID })
	if err := s.enterRows(ctx, "renew leases", ids, landings(ids, row.Executing)...); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	for _, l := range leases {
		if r, ok := s.at(l.Ref, row.Executing); ok {
			until := now.Add(max(l.TTR, row.MinTTR))
			if l.Least {
				until = max(until, r.Due)
			}
			r.Due = until
			r.Executor = cmp.Or(l.Executor, r.Executor)
			r.Execution = cmp.Or(l.Execution, r.Execution)
			r.Late = cmp.Or(l.Late, r.Late)
			s.store(r, now)
		}
	}
	return s.states(ids), nil
}

// Adopt implements [store.Leaser].
func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	return s.do(ctx, "adopt tasks", func() {
		now := s.now()
		for _, ref := range rows {
			if r, ok := s.at(ref, row.Pending); ok && r.Due.IsZero() {
				r.Due = cmp.Or(r.Expected, now)
				s.store(r, now)
			}
		}
	}, row.IDsOf(rows, refID)...)
}

// Discard implements [store.Leaser].
func (s *Store) Discard(ctx context.Context, broken []row.Broken) (int, error) {
	return under(ctx, s, "discard tasks", func() (discarded int) {
		now := s.now()
		for _, b := range broken {
			if r, ok := s.at(b.Ref, b.Status); ok {
				r.Status = row.Failed
				r.Version++
				r.ErrorStack = b.Reason
				r.Due = now
				s.store(r, now)
				discarded++
			}
		}
		return discarded
	}, row.IDsOf(broken, func(b row.Broken) int64 { return b.ID })...)
}

// Update implements [store.Leaser].
func (s *Store) Update(ctx context.Context, tx delaytask.Tx, changes []row.Change) (int, error) {
	const op = "settle tasks"
	if tx != nil {
		return 0, refusedTo(op, errTx)
	}
	into := make([]landing, len(changes))
	for i, c := range changes {
		into[i] = landing{id: c.ID, status: c.To}
	}
	if err := s.enterRows(ctx, op, row.IDsOf(changes, changeID), into...); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	var before []row.Row
	for _, c := range changes {
		old, ok, err := s.change(op, c)
		if err != nil {
			for _, r := range slices.Backward(before) {
				s.tasks.put(r)
			}
			return 0, err
		}
		if ok {
			before = append(before, old)
		}
	}
	for _, r := range before {
		s.notify(r.ID)
	}
	return len(before), nil
}

// change makes one transition. It returns the row as it was, and whether the guard let it.
func (s *Store) change(op string, c row.Change) (old row.Row, ok bool, err error) {
	old, ok = s.at(row.Ref{ID: c.ID, Version: c.Version}, c.From)
	if !ok || c.LeaseOver && old.Due >= s.now() || !c.LeaseBy.IsZero() && old.Due > c.LeaseBy {
		return old, false, nil
	}
	if !s.tasks.put(changed(old, c, s.now())) {
		return old, false, duplicate(op, errKeyTaken)
	}
	return old, true, nil
}

func changed(r row.Row, c row.Change, now row.Time) row.Row {
	r.Status = c.To
	r.Version++
	r.Due = c.Due
	r.Attempt = c.Attempt
	r.CrashCount = c.CrashCount
	r.Execution = c.Execution
	if r.Late = cmp.Or(c.Late, r.Late); c.Execution.IsZero() {
		r.Late = c.Late
	}
	r.ErrorStack = c.ErrorStack
	r.Errors = bytes.Clone(c.Errors)
	r.Executor = c.Executor
	r.Updated = now
	if !c.Expected.IsZero() {
		r.Expected = c.Expected
		r.Delay = c.Delay
	}
	if c.Body != nil {
		r.Body = bytes.Clone(c.Body)
	}
	return r
}

// at returns the row, and whether it is still at the version with the status.
func (s *Store) at(ref row.Ref, status row.Status) (row.Row, bool) {
	r, ok := s.tasks.rows[ref.ID]
	return r, ok && r.Version == ref.Version && r.Status == status
}

func refID(r row.Ref) int64 { return r.ID }

func changeID(c row.Change) int64 { return c.ID }

func sortedByID(refs []row.Ref) []row.Ref {
	return slices.SortedFunc(slices.Values(refs), func(a, b row.Ref) int { return cmp.Compare(a.ID, b.ID) })
}
