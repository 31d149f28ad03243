package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// What the members of a cluster are given to claim, and how.
const (
	memberRows    = 3000
	memberWorkers = 3   // of each member
	memberPage    = 200 // due rows that a worker looks at
	memberBatch   = 20  // of these, drawn by lot, it claims
)

// claimForm is a way to claim a batch. It returns how many rows it has won.
type claimForm struct {
	name  string
	claim func(ctx context.Context, st *store.Store, c *counts, refs []row.Ref) (int, error)
}

var claimForms = []claimForm{
	{"batch, row by row when refused", claimOnce}, // which is what a store does
	{"row by row", claimRows},
}

// counts is what happened in one run.
type counts struct{ calls, refused, lost, claims atomic.Int64 }

func claimOnce(ctx context.Context, st *store.Store, c *counts, refs []row.Ref) (int, error) {
	executor := fmt.Sprint("host:1:measure:", c.claims.Add(1))
	claimed, err := st.Claim(ctx, row.Claim{Rows: refs, Executor: executor})
	c.calls.Add(1)
	if err == nil {
		c.lost.Add(int64(len(refs) - len(claimed.Rows)))
		return len(claimed.Rows), nil
	}
	if row.ClassOf(err) == row.ClassNotApplied {
		c.refused.Add(1)
	}
	return 0, err
}

func claimRows(ctx context.Context, st *store.Store, c *counts, refs []row.Ref) (won int, err error) {
	for _, ref := range refs {
		n, err := claimOnce(ctx, st, c, []row.Ref{ref})
		if err != nil && row.ClassOf(err) != row.ClassNotApplied {
			return won, err
		}
		won += n
	}
	return won, nil
}

// measureMembers lets workers on every member of a cluster claim one backlog, first all of them the same rows, then each member
// rows of its own.
func measureMembers(ctx context.Context, s settings) (err error) {
	b, err := newBench(ctx, s.dsn, "members")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.drop(ctx)) }()
	stores := []*store.Store{b.store}
	for dsn := range strings.SplitSeq(s.members, ",") {
		target, err := store.ParseDSN(dsn)
		if err != nil {
			return err
		}
		db, kind, err := store.Connect(ctx, target.WithDatabase(b.name))
		if err != nil {
			return err
		}
		st := store.New(db, kind)
		defer func() { err = errors.Join(err, st.Close(context.WithoutCancel(ctx)), db.Close()) }()
		stores = append(stores, st)
	}
	text, err := b.describe(ctx)
	if err != nil {
		return err
	}
	table := "| rows | claims | calls | refused | rows lost to others | seconds |\n|---|---|---:|---:|---:|---:|\n"
	for round := range s.rounds {
		for _, shared := range []bool{true, false} {
			for _, f := range claimForms {
				line, err := claimTogether(ctx, stores, f, shared)
				if err != nil {
					return fmt.Errorf("%s: %w", f.name, err)
				}
				table += line
			}
		}
		progress("round %d of %d", round+1, s.rounds)
	}
	return report(fmt.Sprintf("%s, %d members", text, len(stores)), s.rounds, table)
}

var firstMemberID int64 = 1

// claimTogether stores a backlog and claims all of it.
func claimTogether(ctx context.Context, stores []*store.Store, f claimForm, shared bool) (line string, err error) {
	first := firstMemberID
	firstMemberID += memberRows
	tags := make([]string, len(stores))
	for i := range tags {
		tags[i] = fmt.Sprint("t", first)
		if !shared {
			tags[i] += fmt.Sprint(".", i)
		}
	}
	reading, err := stores[0].Now(ctx)
	if err != nil {
		return "", err
	}
	due := reading.Time.Add(-time.Minute)
	rows := make([]row.Row, memberRows)
	for i := range rows {
		rows[i] = row.Row{ID: first + int64(i), Tag: tags[i%len(tags)], TTR: time.Hour, Expected: due, Due: due}
	}
	if err := stores[0].Insert(ctx, nil, rows); err != nil {
		return "", err
	}
	var c counts
	var left atomic.Int64
	left.Store(memberRows)
	failed := make(chan error, len(stores)*memberWorkers)
	var wg sync.WaitGroup
	begin := time.Now()
	for i, st := range stores {
		for range memberWorkers {
			wg.Go(func() {
				for left.Load() > 0 {
					page, err := st.Due(ctx, row.Window{Tags: tags[i : i+1], To: reading.Time, Limit: memberPage})
					if err != nil || len(page) == 0 && !shared {
						failed <- err
						return
					}
					rand.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
					page = page[:min(len(page), memberBatch)]
					if len(page) == 0 {
						continue
					}
					refs := make([]row.Ref, len(page))
					for i, due := range page {
						refs[i] = row.Ref{ID: due.ID, Version: due.Version}
					}
					won, err := f.claim(ctx, st, &c, refs)
					if err != nil {
						failed <- err
						return
					}
					left.Add(int64(-won))
				}
			})
		}
	}
	wg.Wait()
	took := time.Since(begin)
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	what := "own"
	if shared {
		what = "the same"
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %.1f |\n", what, f.name, c.calls.Load(), c.refused.Load(), c.lost.Load(),
		took.Seconds()), err
}
