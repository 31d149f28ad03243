package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Rules are what the invariants leave to settings.
type Rules struct {
	MaxAttempts int           // of every task; 0: not judged
	Quarantine  int           // lost leases after which a task is failed
	TTR         time.Duration // the longest lease, for journals that do not show how leases are moved
	Settle      time.Duration // from the end of the faults until the bounds count
	CaughtUp    time.Duration // from the due time of a task until it is claimed, at most
	Rescue      time.Duration // from the end of a lease until it is taken, at most
	Hold        time.Duration // beyond Settle: for how long executors that could not renew their leases keep them
	Backoff     time.Duration // from a failed attempt to the next, at most
	Failover    time.Duration // how far apart the clocks of two servers may be
	Blur        time.Duration // how far apart the clocks of the journals may be
	Commit      time.Duration // from the write of a transition until others see it, at most
	Behind      bool          // a read at one member of a cluster may miss what another has committed
	Killers     []string      // the faults, by their details, that end a process from outside

	// Many is from how many processes at once on CaughtUpByMany counts instead of CaughtUp; 0: it never does.
	Many           int
	CaughtUpByMany time.Duration
}

// Encode is what a journal keeps of the rules, in the detail of an event of [journal.Rules].
func Encode(r Rules) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and names alone
	}
	return string(text)
}

// RulesOf returns the rules that a journal carries. It returns an error for a journal without rules.
func RulesOf(events []journal.Event) (Rules, error) {
	var r Rules
	for _, e := range events {
		if e.Kind == journal.Rules {
			if err := json.Unmarshal([]byte(e.Detail), &r); err != nil {
				return r, fmt.Errorf("read the rules of a journal: %w", err)
			}
			return r, nil
		}
	}
	return r, errors.New("the journal carries no rules: an event of the kind \"rules\" is missing")
}
