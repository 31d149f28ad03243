package client

import (
	"maps"
	"net/netip"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// stored is a task of an answer as the library has it.
func stored(w *wire.Task) processor.Stored {
	t := processor.Stored{
		ID: int64(w.ID), Tag: w.Tag, Key: w.Key, Body: w.Bytes(), Headers: withApp(w.Headers, w.App),
		Status: processor.Status(w.Status), Version: w.Version,
		Attempt: w.Attempt, MaxAttempts: w.MaxAttempts, CrashCount: w.CrashCount, TTR: millis(w.TTRMS), Priority: w.Priority,
		MaxLate: millis(w.MaxLateMS), LatePolicy: latePolicy(w.LatePolicy), Delay: millis(w.DelayMS),
		Expected: w.Expected.Std(), Started: w.Started.Std(), Finished: w.Finished.Std(), Due: w.Due.Std(),
		Created: w.Created.Std(), Updated: w.Updated.Std(),
		Executor: w.Executor, ErrorStack: w.Error, Broken: w.Broken,
	}
	t.IPAddress, _ = netip.ParseAddr(w.IPAddress) // not valid where it is not known
	for _, a := range w.FailedAttempts {
		t.Errors = append(t.Errors, processor.FailedAttempt{
			N: a.N, Due: a.Due.Std(), Started: a.Started.Std(), Finished: a.Finished.Std(), Executor: a.Executor, Error: a.Error,
		})
	}
	return t
}

func withApp(headers map[string]string, app string) map[string]string {
	if app == "" {
		return headers
	}
	all := map[string]string{processor.AppHeader: app}
	maps.Copy(all, headers)
	return all
}

func latePolicy(name string) processor.LatePolicy {
	for policy, known := range latePolicies {
		if known == name {
			return policy
		}
	}
	return processor.LateRun
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func lateness(l *wire.Lateness) processor.Lateness {
	if l == nil {
		return processor.Lateness{}
	}
	exact := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	return processor.Lateness{Samples: l.Samples, P50: exact(l.P50), P95: exact(l.P95), P99: exact(l.P99), Max: exact(l.Max)}
}
