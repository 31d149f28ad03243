package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// clockEnv are the variables for a server with a wrong clock, and what says how wrong. Its monotonic clock stays right.
func clockEnv(wrong ...string) ([]string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errNoFaketime, err)
	}
	return append(wrong, "LD_PRELOAD="+found[0], "FAKETIME_DONT_FAKE_MONOTONIC=1"), nil
}

var errNoFaketime = errors.New("a server's wrong clock wants Debian's package libfaketime")

// clockName is the part of a server's name about its clock.
func clockName(ahead time.Duration) string {
	if ahead == 0 {
		return ""
	}
	return fmt.Sprintf(", its clock ahead by %v", ahead)
}

// onServersClock prepares events for one journal: the database noted its own by its clock, the processes by the
// machine's. Afterwards every event has its moment on the machine's clock, and beside it the database's time, which
// decides what was early.
func onServersClock(ahead time.Duration, said []journal.Event, noted ...[]journal.Event) {
	if ahead == 0 {
		return
	}
	for i := range said {
		said[i].Clock = said[i].At.Add(ahead)
	}
	for _, events := range noted {
		for i := range events {
			e := &events[i]
			e.At, e.Clock = e.At.Add(-ahead), e.At
		}
	}
}
