package delaytask

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Status is where a task stands.
type Status = processor.Status

// The life of a task: pending, executing, and one of the final three.
const (
	Pending   = processor.Pending
	Executing = processor.Executing
	Completed = processor.Completed
	Failed    = processor.Failed
	Cancelled = processor.Cancelled
)

// Task is a task as a processor gets it: see [processor.Task].
type Task = processor.Task

// TaskRow is a task as it is stored. Times are UTC on the database's clock; one that is not set is the zero time.
type TaskRow = processor.TaskRow

// FailedAttempt is an attempt that did not succeed.
type FailedAttempt = processor.FailedAttempt

func taskOf(r *row.Row) TaskRow {
	headers := row.DecodeHeaders(r.Headers)
	return TaskRow{
		ID: r.ID, Tag: r.Tag, Key: row.OwnKey(headers[processor.AppHeader], r.Key), Body: r.Body, Headers: headers,
		Status: Status(r.Status.String()), Version: r.Version,
		Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, CrashCount: r.CrashCount, TTR: r.TTR, Priority: r.Priority,
		MaxLate: r.MaxLate, LatePolicy: LatePolicy(r.LatePolicy),
		Delay: r.Delay, Expected: r.Expected.Std(), Started: r.Execution.Std(), Late: LateReason(r.Late.String()),
		Finished: r.Finish.Std(), Due: r.Due.Std(),
		Created: r.Created.Std(), Updated: r.Updated.Std(), Schedule: events.ScheduledRun(r.TickOf),
		Executor: r.Executor, IPAddress: address(r.IPAddress), ErrorStack: r.ErrorStack, Errors: attempts(r.Errors),
	}
}

func brokenTask(b *row.Broken) TaskRow {
	return TaskRow{ID: b.ID, Version: b.Version, Status: Status(b.Status.String()), Broken: b.Reason}
}

func address(ip uint32) netip.Addr {
	if ip == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// attempts skips malformed entries: the column is open to other programs' SQL.
func attempts(column []byte) []FailedAttempt {
	var entries []json.RawMessage
	if json.Unmarshal(column, &entries) != nil {
		return nil
	}
	var all []FailedAttempt
	for _, entry := range entries {
		var a row.Attempt
		if json.Unmarshal(entry, &a) == nil {
			all = append(all, FailedAttempt(a))
		}
	}
	return all
}

// Ref names a task: by its id with [ID], or by tag and key with [Key]. Every method that takes one returns
// [ErrInvalidID] for an id that is not positive, and for the zero Ref. It returns [ErrInvalidTag] for an invalid tag,
// and [ErrInvalidKey] for an empty or a reserved key. [Ref.InApp] names a key of an application.
type Ref = processor.Ref

// ID names the task with the id, finished or not.
func ID(id int64) Ref { return processor.ID(id) }

// Key names the unfinished task of the tag that carries the key; there is at most one. A finished one is named by its
// id.
func Key(tag, key string) Ref { return processor.Key(tag, key) }

// nameOf returns the name as the engine takes it.
func nameOf(r Ref) (control.Ref, error) {
	id, tag, key, err := r.Parts()
	return control.Ref{ID: id, Tag: tag, Key: row.ScopedKey(r.App(), key)}, err
}

// drawn makes ids outside of any scheduler. They carry a node number that no node ever leases, so they never count as
// saved by a live node.
var drawn = cluster.NewIDs(cluster.RandomNode(), time.Now)

// NewID returns a new id to save with, for a caller that needs it before the save or saves again under it: see
// [WithID].
func NewID() int64 { return drawn.Next() }
