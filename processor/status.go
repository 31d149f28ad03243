package processor

// Status is where a task stands.
type Status string

// The life of a task: pending, executing, and one of the final three.
const (
	Pending   Status = "pending"
	Executing Status = "executing"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Final reports whether only an operator's retry leaves the status.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }
