package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	outageTag    = "proof.outage"
	outageRate   = 500              // tasks that become due, a second
	outageBulk   = 5000             // are saved at once
	outageHead   = 20 * time.Second // for the saves
	outageBefore = 5 * time.Second  // in which tasks are due while all is well
	outageSpan   = time.Minute      // without a server
	outageDrain  = 3 * time.Minute
	outageLook   = 100 * time.Millisecond
)

// outage kills the server of the database with SIGKILL and starts it again a minute later. Tasks become due all the time, and
// saves go on being tried.
func outage(ctx context.Context, t *trial) (err error) {
	if t.db.Kind == dbtest.SQLite {
		t.add("nothing to show: a file has no server that could be away", "", "", noted)
		return nil
	}
	server, err := dbtest.NewVictim(ctx, t.db.Kind, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if t.db, _, err = server.Source().Create(ctx); err != nil {
		return err
	}
	o := &outageStory{n: outageRate * int((outageBefore+t.away())/time.Second), again: lateness.NewStarts(0)}
	o.seen = lateness.NewStarts(o.n)
	if err := o.happen(ctx, t, server); err != nil {
		return err
	}
	if o.due, err = t.tasks(ctx, outageTag); err != nil {
		return err
	}
	if o.stubborn, err = t.tasks(ctx, stubbornTag); err != nil {
		return err
	}
	o.judge(t)
	return nil
}

// away is how long there is no server.
func (t *trial) away() time.Duration {
	if t.quick {
		return outageSpan / 10
	}
	return outageSpan
}

func (o *outageStory) happen(ctx context.Context, t *trial, server *dbtest.Victim) (err error) {
	s, err := open(ctx, t.db.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	for tag, starts := range map[string]*lateness.Starts{outageTag: o.seen, stubbornTag: o.again} {
		err := s.Register(tag, processor.Func(func(_ context.Context, task *processor.Task) error {
			starts.Add(task.ID, time.Now())
			return nil
		}))
		if err != nil {
			return err
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	begin := time.Now().Add(outageHead)
	items := make([]delaytask.Item, o.n)
	for i, moment := range lateness.Moments(o.n, outageBefore+t.away()) {
		items[i] = delaytask.Item{Tag: outageTag, Options: []delaytask.Option{delaytask.WithTime(begin.Add(moment))}}
	}
	t.say("%d tasks, due at random moments of %v", o.n, outageBefore+t.away())
	for some := range slices.Chunk(items, outageBulk) {
		if _, err := s.SaveDelayTasks(ctx, some); err != nil {
			return err
		}
	}
	if time.Now().After(begin) {
		return fmt.Errorf("saving %d tasks took longer than %v: this machine is too busy to judge", o.n, outageHead)
	}
	end := o.goOnSaving(ctx, s)
	err = lateness.Pass(ctx, time.Until(begin.Add(outageBefore)))
	if err == nil {
		err = o.strike(ctx, t, server)
	}
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	return awaitDone(ctx, t.db, outageDrain)
}

// strike is the outage.
func (o *outageStory) strike(ctx context.Context, t *trial, server *dbtest.Victim) error {
	t.say("kill the server")
	if err := server.Kill(); err != nil {
		return err
	}
	o.killed = time.Now()
	if err := lateness.Pass(ctx, t.away()); err != nil {
		return err
	}
	o.begun = time.Now()
	if err := server.Start(ctx); err != nil {
		return err
	}
	o.recovered = time.Now()
	t.say("the server answers again, %s after it was started", seconds(o.recovered.Sub(o.begun)))
	return nil
}

// awaitDone returns when no task is unfinished or the time is up; what is missing then is for the judge.
func awaitDone(ctx context.Context, db dbtest.Database, limit time.Duration) error {
	pool, err := connect(db)
	if err != nil {
		return err
	}
	defer pool.Close()
	for overdue := time.Now().Add(limit); time.Now().Before(overdue); {
		var left bool
		const query = "SELECT EXISTS(SELECT 1 FROM delay_task_message WHERE status IN (0, 3))"
		if err := pool.QueryRowContext(ctx, query).Scan(&left); err != nil {
			return fmt.Errorf("look for what is unfinished: %w", err)
		}
		if !left {
			return nil
		}
		if err := lateness.Pass(ctx, outageLook); err != nil {
			return err
		}
	}
	return nil
}
