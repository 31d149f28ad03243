package core

import (
	"encoding/json"
	"net/netip"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/row"
)

func taskOf(r *row.Row) delaytask.TaskRow {
	headers := row.DecodeHeaders(r.Headers)
	return delaytask.TaskRow{
		ID: r.ID, Tag: r.Tag, Key: row.OwnKey(headers[delaytask.AppHeader], r.Key), Body: r.Body, Headers: headers,
		Status: r.Status.Text(), Version: r.Version,
		Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, CrashCount: r.CrashCount, TTR: r.TTR, Priority: r.Priority,
		MaxLate: r.MaxLate, LatePolicy: r.LatePolicy,
		Delay: r.Delay, Expected: r.Expected.Std(), Started: r.Execution.Std(),
		Late:     r.Late,
		Finished: r.Finish().Std(), Due: r.Due.Std(),
		Created: r.Created.Std(), Updated: r.Updated.Std(), Schedule: events.ScheduledRun(r.TickOf),
		Executor: r.Executor.At(r.Process), IPAddress: address(r.IPAddress), ErrorStack: r.ErrorStack,
		Errors: attempts(r.Errors),
	}
}

func brokenTask(b *row.Broken) delaytask.TaskRow {
	return delaytask.TaskRow{ID: b.ID, Version: b.Version, Status: b.Status.Text(),
		Broken: b.Reason}
}

func address(ip uint32) netip.Addr {
	if ip == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// attempts skips malformed entries: the column is open to other programs' SQL.
func attempts(column []byte) []delaytask.FailedAttempt {
	var entries []json.RawMessage
	if json.Unmarshal(column, &entries) != nil {
		return nil
	}
	var all []delaytask.FailedAttempt
	for _, entry := range entries {
		var a row.Attempt
		if json.Unmarshal(entry, &a) == nil {
			all = append(all, delaytask.FailedAttempt(a))
		}
	}
	return all
}

// nameOf returns the name as the engine takes it.
func nameOf(r delaytask.Ref) (control.Ref, error) {
	id, tag, key, err := r.Parts()
	return control.Ref{ID: id, Tag: tag, Key: row.ScopedKey(r.App(), key)}, err
}
