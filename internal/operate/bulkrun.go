package operate

import (
	"errors"

	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
)

// BulkRun shows a bulk change. The text of an error that is not known may name hosts and users.
func (v *View) BulkRun(run *bulk.State) wire.BulkRun {
	f := run.Filter
	text := func(stored string) string { return v.Text(f.Tag, stored) }
	f.Key, f.Error = text(f.Key), text(f.Error)
	shown := wire.BulkRun{
		ID: run.ID, Action: run.Verb, Who: run.Who, AsOf: wire.Time(run.AsOf), Began: wire.Time(run.Began),
		Done: run.Done, Seen: wire.Time(run.Seen), Ended: wire.Time(run.Ended), Outcome: string(run.Outcome),
		Stopping: run.Stopping, ProcessOnly: run.Alone,
		Filter: wire.FromFilter(&f),
	}
	if run.AsOf.IsZero() { // its process does not tell what it is
		shown.Detail = text(run.Detail)
	}
	told, isTold := errors.AsType[bulk.Told](run.Err)
	problem, known := Problem(run.Err)
	switch {
	case run.Outcome == bulk.Lost:
		shown.Error = "its process was not seen at it for 30 s: it died, or does not reach the database; to go on, " +
			"send it again with the same filter and as_of"
	case run.Outcome == bulk.Untold:
		shown.Error = "its process does not tell how far it is, as one of an older version: it is at it, or died"
	case run.Err == nil, run.Err == bulk.ErrStopped: //nolint:errorlint // what wraps it is no person
	case isTold:
		shown.Error = text(string(told))
	case known:
		shown.Error = problem.Detail
	default:
		shown.Error = "the database did not answer as it should; send it again with the same as_of"
	}
	return shown
}
