package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	remembered   = 61 * time.Minute // the charts show whole minutes
	pausedFor    = 24 * time.Minute
	unservedFor  = 9 * time.Minute
	historyBatch = 500 // rows that one statement ends
)

// pastProcess has run the tasks of the history.
var pastProcess = row.Process{ID: 1, Name: "shop-1", PID: 1}

// history is the time before the demo. Its charts are drawn from its rows.
type history struct {
	now    time.Time
	tasks  []pastTask
	counts map[row.Time]*rollup.Counts // by their minutes
	number int64
}

// pastTask is a task that was due when it was saved, and its end where it has one.
type pastTask struct {
	row.Row
	end row.Change
}

// remember stores an hour in which the shop has worked, by the statements of saves, results and counts.
func remember(ctx context.Context, s *scheduler.Scheduler, dsn string) error {
	h := &history{now: s.Now(), counts: map[row.Time]*rollup.Counts{}}
	for at := h.now.Add(-remembered); at.Before(h.now); at = at.Add(time.Minute) {
		for i := range works {
			for range around(works[i].aMinute * tide(at)) {
				h.ran(&works[i], at.Add(rand.N(time.Minute)))
			}
		}
	}
	for ago := pausedFor - time.Minute; ago > 0; ago -= time.Minute {
		h.saved(pausedTag, `{"list":#}`, h.now.Add(-ago))
	}
	for ago := unservedFor; ago > 0; ago -= 40 * time.Second {
		h.saved(unservedTag, `{"video":#}`, h.now.Add(-ago))
	}
	stored, ok := core.Of(s).Store().(*sqlstore.Store)
	if !ok {
		return errors.New("the demo needs a database")
	}
	h.write(ctx, stored)
	return errors.Join(h.store(ctx, stored), backdate(ctx, dsn))
}

// saved adds a task that has not begun.
func (h *history) saved(tag, body string, at time.Time) *pastTask {
	h.number++
	h.tasks = append(h.tasks, pastTask{Row: row.Row{
		Tag: tag, Body: []byte(numbered(body, h.number)), MaxAttempts: shopAttempts, TTR: 15 * time.Second,
		Expected: row.At(at), Due: row.At(at),
	}})
	return &h.tasks[len(h.tasks)-1]
}

// ran adds a task that has ended, after a second attempt where the first failed. One that would still run is left out.
func (h *history) ran(w *work, due time.Time) {
	late := 150*time.Microsecond + time.Duration(rand.ExpFloat64()*float64(200*time.Microsecond))
	if ago := h.now.Sub(due); ago > 31*time.Minute && ago < 35*time.Minute { // the database was slow
		late *= 40
	}
	took, err := w.try(h.number)
	started := due.Add(late)
	ended := started.Add(took)
	end := row.Change{
		From: row.Pending, To: row.Completed, Attempt: 1, Execution: row.At(started),
		Executor: row.Executor{Process: pastProcess.ID, Claim: h.number},
	}
	_, final := errors.AsType[*processor.PermanentError](err)
	if err != nil {
		end.ErrorStack = err.Error()
		end.Errors, _ = json.Marshal([]row.Attempt{{ // of texts and times
			N: 1, Due: due, Started: started, Finished: ended, Error: err.Error(),
			Executor: end.Executor.At(pastProcess.String()),
		}})
	}
	again := err != nil && !final
	if again {
		end.Attempt, ended = 2, ended.Add(shopBackoff+took)
	}
	if !ended.Before(h.now) {
		return
	}
	kind := delaytask.EventCompleted
	if final {
		kind, end.To = delaytask.EventFailed, row.Failed
	}
	end.Due = row.At(ended)
	h.saved(w.tag, w.body, due).end = end
	began := h.count(started)
	began.Event(w.tag, delaytask.EventStarted)
	began.Late(w.tag, late)
	if again {
		began.Event(w.tag, delaytask.EventRetried)
	}
	h.count(ended).Event(w.tag, kind)
}

// count returns what a process would have counted in the minute.
func (h *history) count(at time.Time) *rollup.Counts {
	minute := row.SpanMinute.Begin(row.At(at))
	if h.counts[minute] == nil {
		h.counts[minute] = rollup.NewCounts()
	}
	return h.counts[minute]
}

// write stores each minute as if a process of its own had written it.
func (h *history) write(ctx context.Context, to *sqlstore.Store) {
	life := lifecycle.New(ctx, lifecycle.Config{Log: slog.New(slog.DiscardHandler)})
	defer life.End()
	for minute, counts := range h.counts {
		writer := rollup.NewWriter(rollup.Config{
			Counts: counts, Store: to, Life: life, Node: fmt.Sprint("history-", int64(minute)),
			Now: func() (row.Time, bool) { return minute, true },
		})
		writer.Mark(row.At(h.now.Add(-pausedFor)), pausedTag, "history", row.Mark{Kind: report.MarkPaused})
		writer.Close(ctx)
	}
}

func (h *history) store(ctx context.Context, to *sqlstore.Store) error {
	slices.SortFunc(h.tasks, func(a, b pastTask) int { return cmp.Compare(a.Expected, b.Expected) })
	var at row.Time
	source := ids.NewSource(ids.RandomNode(), func() time.Time { return at.Std() })
	var rows []row.Row
	var ends []row.Change
	for _, t := range h.tasks {
		at = t.Expected
		t.ID = source.Next()
		rows = append(rows, t.Row)
		if t.end.ID = t.ID; !t.end.Due.IsZero() {
			ends = append(ends, t.end)
		}
	}
	if err := errors.Join(to.Introduce(ctx, pastProcess), to.Insert(ctx, nil, rows)); err != nil {
		return err
	}
	for some := range slices.Chunk(ends, historyBatch) {
		if _, err := to.Update(ctx, nil, some); err != nil {
			return err
		}
	}
	return nil
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
