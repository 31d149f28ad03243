package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// clockEnv are the variables with which a server is started whose clock is ahead of this machine's. How long it waits
// for things goes by another clock, which stays right.
func clockEnv(ahead time.Duration) ([]string, error) {
	if ahead == 0 {
		return nil, nil
	}
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(found) == 0 {
		return nil, errors.Join(errors.New("a server's wrong clock wants libfaketime, which is a package of Debian"), err)
	}
	return []string{"LD_PRELOAD=" + found[0], fmt.Sprintf("FAKETIME=%+f", ahead.Seconds()), "FAKETIME_DONT_FAKE_MONOTONIC=1"}, nil
}

// clockName is what the name of such a server says of it.
func clockName(ahead time.Duration) string {
	if ahead == 0 {
		return ""
	}
	return fmt.Sprintf(", its clock ahead by %v", ahead)
}

// onServersClock makes one journal of what the database noted by its clock and what everybody else noted by the
// machine's: every event has its moment on the machine's, and beside it the database's time, by which is judged what
// was early.
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
