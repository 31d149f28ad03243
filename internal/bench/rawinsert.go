package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	singleConns = 64
	batchConns  = 4
	batchRows   = 500

	// stockedRows bounds the rows whose statements are built beforehand for a second of inserts: more than two cores can take.
	stockedRows = 150_000
)

var rawInsertSingle = measurement{
	name: "raw.insert_single", quick: true,
	figures: []figure{{"raw.insert_single_per_s", "rows by single-row autocommit INSERTs on 64 connections"}},
	takes:   func(w workload) time.Duration { return w.warm + w.span + onFreshTakes },
	measure: func(ctx context.Context, r *run) error {
		return r.rawInserts(ctx, "raw.insert_single_per_s", singleConns, 1)
	},
}

var rawInsertBatch = measurement{
	name: "raw.insert_batch", quick: true,
	figures: []figure{{"raw.insert_batch_per_s", "rows by 500-row INSERTs on 4 connections"}},
	takes:   func(w workload) time.Duration { return 2*w.warm + w.span + onFreshTakes },
	measure: func(ctx context.Context, r *run) error {
		return r.rawInserts(ctx, "raw.insert_batch_per_s", batchConns, batchRows)
	},
}

// onFreshTakes is what making and dropping a database takes, about.
const onFreshTakes = 300 * time.Millisecond

// rawInserts measures INSERTs of so many rows, whose text is there before the clock starts.
func (r *run) rawInserts(ctx context.Context, key string, conns, rows int) error {
	return r.onFresh(ctx, func(ctx context.Context, d *database) error {
		return d.withRaw(ctx, conns, func(ctx context.Context, raw *raw) error {
			span := r.workload.warm + r.workload.span
			stock := raw.stock(1+int(span.Seconds()*stockedRows)/rows, rows)
			var next atomic.Int64
			insert := func(ctx context.Context, conn int) (int, error) {
				i := next.Add(1) - 1
				if i >= int64(len(stock)) {
					return 0, nil
				}
				_, err := raw.conns[conn].ExecContext(ctx, stock[i])
				return rows, err
			}
			if _, err := hammer(ctx, len(raw.conns), r.workload.warm, insert); err != nil {
				return err
			}
			done, err := hammer(ctx, len(raw.conns), r.workload.span, insert)
			if err != nil {
				return err
			}
			r.figures.add(key, done.perSecond())
			return nil
		})
	})
}

// stock builds INSERT statements of tasks that are not due soon, each at a moment of its own.
func (r *raw) stock(statements, rows int) []string {
	ids, due := rawIDs(), row.At(time.Now().Add(farDelay))
	stock := make([]string, statements)
	var text []byte
	for i := range stock {
		text = append(text[:0], insertHead...)
		for j := range rows {
			if j > 0 {
				text = append(text, ", "...)
			}
			due++
			text = r.appendRow(text, ids.Next(), due)
		}
		stock[i] = string(text)
	}
	return stock
}
