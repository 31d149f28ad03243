package audit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// reportEvery is how often an act tells how far it is, and so about how soon it learns that it is to stop.
	reportEvery = time.Second
	// reportTime bounds a report. The end of an act waits for the one that is under way.
	reportTime = 2 * time.Second
	// silence is how long an act may be unseen before its process counts as dead. It outlasts a failover.
	silence = 30 * time.Second
)

// Open reports whether the entry is of a bulk change under way whose process tells that it is at it.
func Open(e *row.AuditEntry) bool { return e.Outcome == "" && e.Seen != 0 }

// Lost reports whether the process of such an entry counts as dead. now is the time of the database.
func Lost(e *row.AuditEntry, now time.Time) bool { return Open(e) && now.Sub(e.Seen.Std()) > silence }

// Progress tells once a second how far the act is, for other processes. bulk says what it is. stop is called when
// a caller has asked to stop the act, maybe again. Progress returns at the first turn after the end of ctx; the first
// report is always tried, so that others know what a short act was.
//
// A report that fails harms nothing. The first failure is logged.
func (e *Entry) Progress(ctx context.Context, bulk string, tasks *atomic.Int64, stop func()) {
	turns := time.NewTicker(reportEvery)
	defer turns.Stop()
	for failed := false; ; {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTime)
		asked, err := e.log.Store.ReportAudit(call, e.ID, tasks.Load(), bulk)
		cancel()
		if err != nil && !failed {
			failed = true
			e.log.Log.Warn("a bulk change goes on, and other processes do not see how far it is", "entry", e.ID,
				"err", err)
		}
		if asked {
			stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-turns.C:
			if ctx.Err() != nil { // a turn was due while a report took long
				return
			}
		}
	}
}
