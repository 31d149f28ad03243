package delaytask

import (
	"time"

	"github.com/delaytask/delaytask/processor"
)

// Overlap says what happens to a tick that falls due while as many runs of its schedule are open as may be. The texts
// are those of the service.
type Overlap = processor.Overlap

// The values of [WithOverlap]. A run is open from when it is planted until it ends.
const (
	OverlapSkip     = processor.OverlapSkip     // the tick does not run; the default
	OverlapQueueOne = processor.OverlapQueueOne // one run follows the open one, for the latest tick
	OverlapReplace  = processor.OverlapReplace  // the open run is cancelled, and the tick runs
	OverlapAllow    = processor.OverlapAllow    // the tick runs beside the open ones, up to WithMaxOpen
)

// Missed says what happens to ticks that no process has decided in time, as after an outage. The texts are those of the
// service.
type Missed = processor.Missed

// The values of [WithMissed].
const (
	MissedOnce = processor.MissedOnce // the latest runs now; the default
	MissedSkip = processor.MissedSkip // the latest runs if it is at most a minute late
	MissedAll  = processor.MissedAll  // each runs, the oldest first; of more than 1,000 the newest 1,000
)

// WithOverlap says what happens to a tick that falls due while a run of its schedule is open. Under all policies but
// [OverlapAllow] no two runs are open together, and no attempt of a run begins after the next tick: see
// [WithRetryPastNext]. The default is [OverlapSkip]. It returns [ErrInvalidOption] for an unknown policy. The option is
// for schedules.
func WithOverlap(policy Overlap) Option { return processor.WithOverlap(policy) }

// WithMaxOpen bounds how many runs of a schedule with [OverlapAllow] may be open at once, 1 to 10,000. The default is
// 100. It returns [ErrInvalidOption]. The option is for schedules.
func WithMaxOpen(n int) Option { return processor.WithMaxOpen(n) }

// WithMissed says what happens to ticks that no process has decided in time. The default is [MissedOnce]. It returns
// [ErrInvalidOption] for an unknown policy. The option is for schedules.
func WithMissed(policy Missed) Option { return processor.WithMissed(policy) }

// WithStartWithin drops ticks that did not start within d of their time: a nightly job does not run at noon after an
// outage. The default is no bound. It returns [ErrInvalidOption] when d is below 1 s or over 290 years. The option is
// for schedules.
func WithStartWithin(d time.Duration) Option { return processor.WithStartWithin(d) }

// WithJitter starts the runs up to d after their ticks, so that not all schedules run at minute 0. The name of the
// schedule alone decides by how much, so the distances between runs stay. The default is 0. It returns
// [ErrInvalidOption] when d is negative or over 24 h. The option is for schedules.
func WithJitter(d time.Duration) Option { return processor.WithJitter(d) }

// WithPauseAfter pauses the schedule when n runs in a row have failed for good. The reason holds the last error. A
// cancelled run counts as neither. The default, 0, never pauses. It returns [ErrInvalidOption] when n is negative or
// over 2,147,483,647. The option is for schedules.
func WithPauseAfter(n int) Option { return processor.WithPauseAfter(n) }

// WithMaxRuns ends the schedule after n runs. Ticks that do not run count as none. The default, 0, is no bound. It
// returns [ErrInvalidOption] when n is negative or over 2,147,483,647. The option is for schedules.
func WithMaxRuns(n int) Option { return processor.WithMaxRuns(n) }

// WithKeepRuns sets how many rows the history of the schedule keeps, 1 to 100,000. The default is 100. It returns
// [ErrInvalidOption]. The option is for schedules.
func WithKeepRuns(n int) Option { return processor.WithKeepRuns(n) }

// WithRetryPastNext lets attempts of a run begin after the next tick is due. Without it a run fails then, because an
// hour of backoff would silence a schedule for each minute. It is meaningless for [OverlapAllow], which has no such
// bound. The option is for schedules.
func WithRetryPastNext() Option { return processor.WithRetryPastNext() }
