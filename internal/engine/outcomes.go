package engine

import (
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// outcomes does what follows the end of an attempt that this process has stored: of one that ran here, of one that its
// holder has ended, and of one whose lease a holder let end. A cancel, a rescue and a row that cannot be decoded end no
// attempt of this process. They are reported where they are stored.
type outcomes struct {
	*deps
	arm *armer
}

// stored reports the result of an attempt. The row is as it was before, and is not owned any more. It was due at a
// moment that hooks are told.
func (o *outcomes) stored(r *row.Row, due row.Time, s *settlement) {
	o.Metrics.Run(r.Tag, s.kind)
	switch s.change.To {
	case row.Completed:
		o.watch.tell(processor.EventCompleted, r, nil)
	case row.Cancelled:
		o.watch.tell(processor.EventCancelled, r, s.err)
	case row.Failed:
		o.watch.tell(processor.EventFailed, r, s.err)
		o.taskFailed(r, due, s.err)
	case row.Pending:
		if s.change.Attempt == r.Attempt { // a release and a snooze take the attempt back
			o.watch.tell(processor.EventRetried, r, s.err)
			o.Metrics.Retried(r.Tag)
			o.attemptFailed(r, s.err, s.change.Due)
		}
		o.arm.written(afterChange(r, s.change))
	}
}
