package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// What all tasks of measurements have, raw or not.
const (
	benchTag = "bench.task"
	farDelay = 24 * time.Hour // of tasks that are not to run

	// benchBody has 100 bytes.
	benchBody = `{"order":"7d793037-a076-4d4f-8e5b-0c4f2b1a9e11","amount":"199.90","reason":"not paid in 30 minutes"}`
)

// raw is a program that knows nothing of delaytask but its table.
type raw struct {
	conns []*sql.Conn // open and warm
	kind  sqlstore.Kind
}

// withRaw gives f n connections. A SQLite file has one writer, and is the faster for being written by one connection
// alone.
func (d *database) withRaw(ctx context.Context, n int, f func(context.Context, *raw) error) (err error) {
	pool, err := d.connect(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	r := &raw{kind: d.kind}
	defer func() {
		for _, conn := range r.conns {
			err = errors.Join(err, conn.Close())
		}
	}()
	if d.kind == sqlstore.SQLite {
		n = 1
	}
	for range n {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("open %d connections, which the server must allow: %w", n, err)
		}
		r.conns = append(r.conns, conn)
		var rows int // opens the table
		warm := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT id FROM delay_task_message LIMIT 1) one")
		if err := warm.Scan(&rows); err != nil {
			return fmt.Errorf("warm a connection: %w", err)
		}
	}
	return f(ctx, r)
}

// rawIDs makes ids like delaytask's own: they ascend.
func rawIDs() *cluster.IDs { return cluster.NewIDs(cluster.RandomNode(), time.Now) }

const updateConns = 2

var rawClaimBatch = measurement{
	name: "raw.claim_batch", quick: true,
	figures: []figure{{"raw.claim_batch_per_s",
		"rows claimed by guarded UPDATEs of 500 rows on 2 connections (SQLite: 1)"}},
	takes: updatesTake,
	measure: func(ctx context.Context, r *run) error {
		return r.rawUpdates(ctx, "raw.claim_batch", row.Pending, claimForms)
	},
}

var rawSettleBatch = measurement{
	name: "raw.settle_batch", quick: true,
	figures: []figure{{"raw.settle_batch_per_s", "rows completed by the same, each with a start of its own"}},
	takes:   updatesTake,
	measure: func(ctx context.Context, r *run) error {
		return r.rawUpdates(ctx, "raw.settle_batch", row.Executing, settleForms)
	},
}

func updatesTake(w workload) time.Duration {
	return onFreshTakes + filledIn(w.batch) + time.Duration(w.batch)*25*time.Microsecond
}

// filledIn is what filling a table takes, about.
func filledIn(rows int) time.Duration { return time.Duration(rows) * 20 * time.Microsecond }

// updateForm is a way to write the UPDATE of a batch.
type updateForm struct {
	name string
	kind sqlstore.Kind
	// text updates the rows, in ascending order, of tasks in their first attempt.
	text func(ids []int64) string
}

// rawUpdates measures UPDATEs of rows that stand at the status, in the form that is the fastest on this server. Every
// statement must change all of its rows.
func (r *run) rawUpdates(ctx context.Context, name string, from row.Status, forms []updateForm) error {
	form, err := r.fastest(ctx, name, from, forms)
	if err != nil {
		return err
	}
	return r.onFresh(ctx, func(ctx context.Context, d *database) error {
		ids, err := d.fill(ctx, r.workload.batch, filling{status: from, due: dueNow()})
		if err != nil {
			return err
		}
		return d.withRaw(ctx, updateConns, func(ctx context.Context, raw *raw) error {
			done, err := raw.update(ctx, ids, form)
			if err != nil {
				return err
			}
			r.figures.add(name+"_per_s", done.perSecond())
			return nil
		})
	})
}

// update builds all statements and then runs them.
func (r *raw) update(ctx context.Context, ids []int64, form updateForm) (hammered, error) {
	batches := slices.Collect(slices.Chunk(ids, batchRows))
	texts := make([]string, len(batches))
	for i, batch := range batches {
		texts[i] = form.text(batch)
	}
	var next atomic.Int64
	return hammer(ctx, len(r.conns), forEver, func(ctx context.Context, conn int) (int, error) {
		i := int(next.Add(1)) - 1
		if i >= len(texts) {
			return 0, nil
		}
		result, err := r.conns[conn].ExecContext(ctx, texts[i])
		if err != nil {
			return 0, err
		}
		changed, err := result.RowsAffected()
		if err == nil && int(changed) != len(batches[i]) {
			err = fmt.Errorf("%s: a statement for %d rows changed %d", form.name, len(batches[i]), changed)
		}
		return len(batches[i]), err
	})
}

// formTrials is how many batches each form has. The fastest counts: whatever else the machine does disturbs that one
// least.
const formTrials = 6

// fastest tries the forms in turn, once in a run, and remembers the fastest.
func (r *run) fastest(
	ctx context.Context, name string, from row.Status, forms []updateForm,
) (best updateForm, err error) {
	forms = slices.DeleteFunc(slices.Clone(forms), func(f updateForm) bool { return f.kind != r.place.target.Kind() })
	if len(forms) == 1 {
		return forms[0], nil
	}
	if i := slices.IndexFunc(forms, func(f updateForm) bool { return f.name == r.meta.Forms[name] }); i >= 0 {
		return forms[i], nil
	}
	err = r.onFresh(ctx, func(ctx context.Context, d *database) error {
		best, err = r.try(ctx, d, from, forms)
		return err
	})
	r.meta.Forms[name] = best.name
	return best, err
}

// try returns the fastest form. One that the server does not know is no candidate.
func (r *run) try(ctx context.Context, d *database, from row.Status, forms []updateForm) (best updateForm, err error) {
	fastest := forEver
	refused := make(map[string]error)
	for range formTrials {
		for _, form := range forms {
			if refused[form.name] != nil {
				continue
			}
			ids, err := d.fill(ctx, min(batchRows, r.workload.batch), filling{status: from, due: dueNow()})
			if err != nil {
				return best, err
			}
			err = d.withRaw(ctx, 1, func(ctx context.Context, raw *raw) error {
				done, err := raw.update(ctx, ids, form)
				if refused[form.name] = err; err == nil && done.took < fastest {
					best, fastest = form, done.took
				}
				return nil
			})
			if err != nil {
				return best, err
			}
		}
	}
	if fastest == forEver {
		return best, errors.Join(slices.Collect(maps.Values(refused))...)
	}
	return best, nil
}
