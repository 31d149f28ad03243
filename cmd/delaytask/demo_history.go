package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/processor"
)

const (
	remembered   = 61 * time.Minute // the charts show whole minutes
	pausedFor    = 24 * time.Minute
	unservedFor  = 9 * time.Minute
	historyBatch = 500 // rows that one statement ends
	shopAttempts = 5
	shopBackoff  = 2 * time.Second
)

// history is the time before the demo. Its charts are those of its rows.
type history struct {
	now    time.Time
	tasks  []pastTask
	counts map[talliedSpan]*tally
	number int64
}

// pastTask is a task that was due when it was saved, and its end where it has one.
type pastTask struct {
	row.Row
	end row.Change
}

type talliedSpan struct {
	span  row.RollupSpan
	begin row.Time
}

// tally is what a process would have counted within a span.
type tally struct{ byTag, all *rollup.Counts }

// remember stores an hour in which the shop has worked, by the statements of saves, results and counts.
func (s *shop) remember(ctx context.Context, dsn string) error {
	h := &history{now: s.Now(), counts: map[talliedSpan]*tally{}}
	for at := h.now.Add(-remembered); at.Before(h.now); at = at.Add(time.Minute) {
		for i := range works {
			w := &works[i]
			for range around(w.aMinute * tide(at)) {
				h.ran(w, at.Add(rand.N(time.Minute)))
			}
		}
	}
	for ago := pausedFor - time.Minute; ago > 0; ago -= time.Minute {
		h.saved(pausedTag, `{"list":#}`, "", h.now.Add(-ago))
	}
	for ago := unservedFor; ago > 0; ago -= 40 * time.Second {
		h.saved(unservedTag, `{"video":#}`, "", h.now.Add(-ago))
	}
	stored, ok := bridge.Store(s.Scheduler).(*sqlstore.Store)
	if !ok {
		return errors.New("the demo needs a database")
	}
	if err := h.store(ctx, stored); err != nil {
		return err
	}
	return backdate(ctx, dsn)
}

// saved adds a task that has not begun.
func (h *history) saved(tag, body, key string, at time.Time) *pastTask {
	h.number++
	h.tasks = append(h.tasks, pastTask{Row: row.Row{
		Tag: tag, Key: numbered(key, h.number), Body: []byte(numbered(body, h.number)), MaxAttempts: shopAttempts,
		TTR: 15 * time.Second, Expected: row.At(at), Due: row.At(at),
	}})
	return &h.tasks[len(h.tasks)-1]
}

// ran adds a task that has ended. One that would still run is left out.
func (h *history) ran(w *work, due time.Time) {
	late := 150*time.Microsecond + time.Duration(rand.ExpFloat64()*float64(200*time.Microsecond))
	if ago := h.now.Sub(due); ago > 31*time.Minute && ago < 35*time.Minute { // the database was slow
		late *= 40
	}
	t := h.saved(w.tag, w.body, w.key, due)
	end := row.Change{
		From: row.Pending, To: row.Completed, Execution: row.At(due.Add(late)), Executor: "shop-1:1:history:1",
	}
	var errs []row.Attempt
	var retried []time.Time
	for at := due; end.Finish.IsZero(); {
		took, err := w.try(h.number)
		started := at.Add(late)
		ended := started.Add(took)
		if !ended.Before(h.now) {
			h.tasks = h.tasks[:len(h.tasks)-1]
			return
		}
		end.Attempt++
		if err != nil {
			errs = append(errs, row.Attempt{
				N: end.Attempt, Due: at, Started: started, Finished: ended, Executor: end.Executor, Error: err.Error(),
			})
			end.ErrorStack = err.Error()
			if _, final := errors.AsType[*processor.PermanentError](err); !final && end.Attempt < shopAttempts {
				retried = append(retried, ended)
				at = ended.Add(shopBackoff)
				continue
			}
			end.To = row.Failed
		}
		end.Finish, end.Due = row.At(ended), row.At(ended)
	}
	if errs != nil {
		end.Errors, _ = json.Marshal(errs) // of texts and times
	}
	t.end = end
	h.count(w.tag, due.Add(late), func(c *rollup.Counts, tag string) { c.Late(tag, late) })
	for _, at := range retried {
		h.count(w.tag, at, func(c *rollup.Counts, tag string) { c.Event(tag, processor.EventRetried) })
	}
	h.count(w.tag, end.Finish.Std(), func(c *rollup.Counts, tag string) {
		if end.To == row.Failed {
			c.Event(tag, processor.EventFailed)
		} else {
			c.Event(tag, processor.EventCompleted)
		}
	})
}

// count adds to the minute and the hour of a moment, of the tag and of all.
func (h *history) count(tag string, at time.Time, add func(c *rollup.Counts, tag string)) {
	for _, span := range []row.RollupSpan{row.SpanMinute, row.SpanHour} {
		k := talliedSpan{span, span.Begin(row.At(at))}
		if h.counts[k] == nil {
			h.counts[k] = &tally{rollup.NewCounts(), rollup.NewCounts()}
		}
		add(h.counts[k].byTag, tag)
		add(h.counts[k].all, "all")
	}
}

func (h *history) store(ctx context.Context, to *sqlstore.Store) error {
	slices.SortFunc(h.tasks, func(a, b pastTask) int { return cmp.Compare(a.Expected, b.Expected) })
	var at row.Time
	ids := cluster.NewIDs(cluster.RandomNode(), func() time.Time { return at.Std() })
	var rows []row.Row
	var ends []row.Change
	for i := range h.tasks {
		t := &h.tasks[i]
		at = t.Expected
		t.ID = ids.Next()
		rows = append(rows, t.Row)
		if !t.end.Finish.IsZero() {
			t.end.ID = t.ID
			ends = append(ends, t.end)
		}
	}
	if err := to.Insert(ctx, nil, rows); err != nil {
		return err
	}
	for some := range slices.Chunk(ends, historyBatch) {
		if _, err := to.Update(ctx, nil, some); err != nil {
			return err
		}
	}
	return to.PutRollups(ctx, h.rollups())
}

// backdate lets the tasks have been saved when they were due. Saves store the present time.
func backdate(ctx context.Context, dsn string) error {
	db, _, err := sqlstore.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE delay_task_message
		SET create_time = expected_time, update_time = COALESCE(finish_time, expected_time)`)
	return errors.Join(err, db.Close())
}

func (h *history) rollups() (all []row.Rollup) {
	for k, c := range h.counts {
		every := c.all.Take()
		for i := range every {
			every[i].Tag = row.EveryTag
		}
		for _, r := range append(c.byTag.Take(), every...) {
			r.Span, r.Begin, r.Node = k.span, k.begin, "history"
			all = append(all, r)
		}
	}
	return append(all, row.Rollup{
		Span: row.SpanMark, Begin: row.At(h.now.Add(-pausedFor)), Tag: pausedTag, Node: "history",
		Mark: row.Mark{Kind: row.MarkPaused},
	})
}
