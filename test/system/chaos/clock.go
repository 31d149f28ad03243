package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/role"
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
func clockName(o options) (name string) {
	if o.ahead != 0 {
		name = fmt.Sprintf(", its clock ahead by %v", o.ahead)
	}
	if o.slew != 0 {
		name += fmt.Sprintf(", its clock slewed by %g %%", 100*o.slew)
	}
	return name
}

// setClock finds out when the slew of the server's clock began. A server that is killed and started again goes on by
// the same clock.
func (s *stage) setClock(ctx context.Context) error {
	s.clock = role.Clock{Ahead: s.opts.ahead, Slew: s.opts.slew}
	if s.opts.slew == 0 {
		return lateness.ClockAhead(ctx, s.world.Admin, s.opts.ahead)
	}
	read, err := lateness.ReadClock(ctx, s.world.Admin)
	// The whole run goes by it.
	for tries := 0; err == nil && read.Within > rules(s.opts).Blur/4 && tries < 100; tries++ {
		read, err = lateness.ReadClock(ctx, s.world.Admin)
	}
	s.clock.From = time.Now().Add(-time.Duration(float64(read.Ahead-s.opts.ahead) / s.opts.slew))
	return err
}

// keepsClock returns an error when the server's clock is not any more what the run has gone by.
func (s *stage) keepsClock(ctx context.Context) error {
	if s.opts.slew == 0 {
		return nil
	}
	now := time.Now()
	read, err := lateness.ReadClock(ctx, s.world.Admin)
	if off := s.clock.At(now).Sub(now) - read.Ahead; err == nil && off.Abs() > read.Within+rules(s.opts).Blur {
		return fmt.Errorf("the server's clock is off by %v of what its slew makes it", off)
	}
	return err
}

// onServersClock prepares events for one journal: the database noted its own by its clock, the processes by the
// machine's. Afterwards every event has its moment on the machine's clock, and beside it the database's time, which
// decides what was early. A process that may err about it has noted the latest moment that it may have gone by.
func onServersClock(clock role.Clock, said []journal.Event, noted ...[]journal.Event) {
	if clock == (role.Clock{}) {
		return
	}
	for i := range said {
		e := &said[i]
		if e.Clock.IsZero() {
			e.Clock = e.At
		}
		e.Clock = clock.At(e.Clock)
	}
	for _, events := range noted {
		for i := range events {
			e := &events[i]
			e.At, e.Clock = clock.Moment(e.At), e.At
		}
	}
}
