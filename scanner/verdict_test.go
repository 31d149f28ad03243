package scanner

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var verdictTime = row.At(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))

func TestVerdictTellsCrashesFromFailures(t *testing.T) {
	t.Parallel()
	popped := row.Executor{Process: 1, Claim: -1}
	for _, tc := range []struct {
		name    string
		row     row.Row
		to      row.Status
		attempt int
		crashes int
		why     string
	}{
		{"the first crash costs no attempt", row.Row{Attempt: 1}, row.Pending, 0, 1, "lease lost"},
		{"nor does a later one", row.Row{Attempt: 7, CrashCount: 2}, row.Pending, 6, 3, "lease lost"},
		{"attempts never go below zero", row.Row{Attempt: 0}, row.Pending, 0, 1, "lease lost"},
		{"a crash does not end the last attempt", row.Row{Attempt: 3, MaxAttempts: 3}, row.Pending, 2, 1, "lease lost"},
		{"one crash before the limit", row.Row{Attempt: 1, CrashCount: 3}, row.Pending, 0, 4, "lease lost"},
		{"at the limit it is quarantined", row.Row{Attempt: 1, CrashCount: 4}, row.Failed, 0, 5, "quarantined: "},
		{"a popped row spends its attempt", row.Row{Attempt: 2, MaxAttempts: 3, Executor: popped}, row.Pending, 2, 0,
			"handed out"},
		{"a popped row without a limit", row.Row{Attempt: 99, Executor: popped}, row.Pending, 99, 0, "handed out"},
		{"its last attempt", row.Row{Attempt: 3, MaxAttempts: 3, Executor: popped}, row.Failed, 3, 0,
			"attempts used up"},
		{"a popped row is never quarantined", row.Row{Attempt: 1, CrashCount: 4, Executor: popped}, row.Pending, 1, 4,
			"handed out"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.row
			r.ID, r.Version, r.Status, r.Execution = 8, 41, row.Executing, verdictTime-5
			c := Verdict(r, verdictTime-3, verdictTime, 5)
			if c.To != tc.to || c.Attempt != tc.attempt || c.CrashCount != tc.crashes ||
				!strings.HasPrefix(c.ErrorStack, tc.why) {
				t.Errorf("got %v, attempt %d, crashes %d, %q", c.To, c.Attempt, c.CrashCount, c.ErrorStack)
			}
			if c.ID != 8 || c.Version != 41 || c.From != row.Executing || !c.LeaseOver ||
				c.Executor != (row.Executor{}) {
				t.Errorf("the change is not guarded, or changes too much: %+v", c)
			}
			if c.Due != verdictTime || c.Execution != r.Execution || !c.Expected.IsZero() {
				t.Errorf("times are wrong: %+v", c)
			}
			after := changed(r, c)
			if after.Version != 42 || after.Status != c.To || after.Attempt != c.Attempt ||
				after.CrashCount != c.CrashCount {
				t.Errorf("the row after the change: %+v", after)
			}
		})
	}
}

// A lease without an end is over, too.
func TestARunOfAScheduleEndsWithItsLease(t *testing.T) {
	t.Parallel()
	for due, want := range map[row.Time]row.Time{verdictTime - 7: verdictTime - 7, 0: verdictTime} {
		r := row.Row{Attempt: 1, Due: due, TickOf: &row.TickOf{RetryBefore: verdictTime - 2}}
		if c := Verdict(r, 0, verdictTime, 5); c.To != row.Failed || c.Due != want {
			t.Errorf("lease until %v: %v, at %v, want %v", due, c.To, c.Due, want)
		}
	}
}

func TestVerdictAppendsWhatHappened(t *testing.T) {
	t.Parallel()
	of := row.Executor{Process: 10, Claim: 9}
	r := row.Row{Attempt: 3, Executor: of, Process: "h:1", Errors: []byte(`[{"n":2,"error":"no"}]`)}
	c := Verdict(r, verdictTime-3, verdictTime, 5)
	var attempts []row.Attempt
	mustOK(t, json.Unmarshal(c.Errors, &attempts))
	if len(attempts) != 2 || attempts[1].N != 3 || attempts[1].Executor != "h:1:000000000000000a:9" ||
		attempts[1].Error != c.ErrorStack ||
		!attempts[1].Started.Equal((verdictTime - 3).Std()) || !attempts[1].Finished.Equal(verdictTime.Std()) {
		t.Fatalf("errors: %s", c.Errors)
	}
}
