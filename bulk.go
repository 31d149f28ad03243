package delaytask

import "time"

// Bulk selects the tasks that CancelAll and RetryAll change.
type Bulk struct {
	// Filter selects the tasks. Its Status and Order may be left out, its After must be. Limit is the size of a batch:
	// 500 by default, 1,000 at most.
	Filter Filter
	DryRun bool // count only: at most 10,000 tasks, for about 0.1 s
	// AsOf leaves out tasks that were saved, have failed, or became late, since then. Zero is now. To change what a dry
	// run has counted, take its AsOf. A row whose create_time lies ahead counts as saved later.
	AsOf     time.Time
	Progress func(done int) // called after every batch that was changed, with the number so far; may be nil
}

// BulkResult is what CancelAll or RetryAll has done.
type BulkResult struct {
	Tasks  int       // that were changed; in a dry run, that would be
	Capped bool      // Tasks of a dry run is a lower bound
	AsOf   time.Time // the moment that bounds what was changed, by the database's clock
}
