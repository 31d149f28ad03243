//go:build !race

// Package counts holds against files what fixed work costs that one caller gives to delaytask. It counts what is the
// same on every machine, and no time. It is a package of its own, because allocations of other tests would count.
package counts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	// Of all turns the fewest count: a heartbeat of the scheduler may fall into a save.
	saveTurns, runTurns = 20, 4

	bulk  = 1000
	batch = 100
	few   = 20
	tag   = "counted"
)

var body = strings.Repeat("b", 100)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestFixedWorkCostsWhatTheFileSays(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			d := dbtest.NewDisposable(t, kind).Database(t)
			s, err := scheduler.Open(t.Context(), d.DSN, scheduler.Config{Migrate: true})
			servertest.OK(t, err)
			t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) }) // after a failure
			db, is, err := sqlstore.Connect(t.Context(), d.DSN)
			servertest.OK(t, err)
			t.Cleanup(func() { servertest.OK(t, db.Close()) })
			c := newCounter(t, db, kind)
			inTurns := func(n int, work func()) {
				for range n {
					_, err := db.ExecContext(t.Context(), "TRUNCATE delay_task_message")
					servertest.OK(t, err)
					work()
				}
			}
			inTurns(saveTurns, func() { saves(t, c, s) })
			servertest.OK(t, s.Stop(t.Context())) // else its node would be read, which bears the name of the machine
			store := sqlstore.New(db, is)
			inTurns(runTurns, func() { runs(t, c, store) })
			servertest.OK(t, store.Close(t.Context()))
			golden.Near(t, "testdata/"+string(kind)+".txt", c.String(), 0.05)
		})
	}
}

// saves has one caller save.
func saves(t *testing.T, c *counter, s *scheduler.Scheduler) {
	t.Helper()
	for range 5 { // so short that few heartbeats fall into one
		c.count(t, "a save", few, times(few, func(ctx context.Context) error {
			return one(s.SaveDelayTask(ctx, tag, body, 24*time.Hour))
		}))
	}
	due := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	items := make([]delaytask.Item, bulk)
	for i := range items {
		at := due.Add(time.Duration(i) * time.Millisecond)
		items[i] = delaytask.Item{Tag: tag, Body: body, Options: []delaytask.Option{delaytask.WithTime(at)}}
	}
	c.count(t, "each of 1,000 saves", bulk, func(ctx context.Context) error {
		return one(s.SaveDelayTasks(ctx, items))
	})
}

// runs sends what the engine sends for tasks to run.
func runs(t *testing.T, c *counter, store *sqlstore.Store) {
	t.Helper()
	due := row.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	at := func(i int) row.Time { return due.Add(time.Duration(i) * time.Millisecond) }
	claim := row.Claim{Executor: row.Executor{Process: 1 << 62, Claim: 1}}
	rows, settles := make([]row.Row, bulk), make([]row.Change, batch)
	for i := range rows {
		id := 1<<60 + int64(i)
		rows[i] = row.Row{ID: id, Tag: tag, Body: []byte(body), TTR: time.Minute, Expected: at(i), Due: at(i)}
		if i < batch {
			claim.Rows = append(claim.Rows, row.Ref{ID: id})
			settles[i] = row.Change{ID: id, Version: 1, From: row.Executing, To: row.Completed, Attempt: 1,
				Due: at(i + 1), Execution: at(i), Executor: claim.Executor, SameExecutor: true}
		}
	}
	servertest.OK(t, store.Insert(t.Context(), nil, rows))
	window := func(until, limit, want int) func(context.Context) error {
		w := row.Window{Tags: []string{tag}, From: at(-1000), To: at(until), Lacking: want > 0, Limit: limit}
		return func(ctx context.Context) error {
			found, err := store.Due(ctx, w)
			return errors.Join(err, all(len(found), want))
		}
	}
	c.count(t, "each row that a look-ahead finds", batch, window(batch, 2000, batch))
	c.count(t, "a poll that finds none", few, times(few, window(-100, 200, 0)))
	node := row.Node{Number: 7, Token: "token", Name: "name", Host: "host", PID: 7, Tags: []string{tag}}
	_, err := store.Join(t.Context(), node, time.Second)
	servertest.OK(t, err)
	for name, f := range map[string]func(context.Context) error{
		"a heartbeat":              func(ctx context.Context) error { return one(store.Beat(ctx, node)) },
		"a look at tags and nodes": func(ctx context.Context) error { return one(store.Cluster(ctx, 2*time.Second)) },
		"a reading of the nodes":   func(ctx context.Context) error { _, _, err := store.Nodes(ctx); return err },
	} {
		c.count(t, name, few, times(few, f))
	}
	c.count(t, "each of 100 claims", batch, func(ctx context.Context) error {
		won, err := store.Claim(ctx, claim)
		return errors.Join(err, all(len(won.Rows), batch))
	})
	c.count(t, "each of 100 settles", batch, func(ctx context.Context) error {
		settled, err := store.Update(ctx, nil, settles)
		return errors.Join(err, all(settled, batch))
	})
}

func times(n int, f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for range n {
			err = errors.Join(err, f(ctx))
		}
		return err
	}
}

func one[A any](_ A, err error) error { return err }

func all(got, want int) error {
	if got != want {
		return fmt.Errorf("there are %d rows, want %d", got, want)
	}
	return nil
}
