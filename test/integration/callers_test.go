//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// call is one save, and the answer that its caller got.
type call struct {
	kind     callKind
	name     string // which its body begins with; no other call has it
	delay    time.Duration
	patience time.Duration // the timeout of its context

	id    int64
	err   error
	begun time.Time
	took  time.Duration
}

// callKind is how the task is saved; it is its tag, too.
type callKind string

const (
	plainCall callKind = "plain"
	keyedCall callKind = "keyed"
	txCall    callKind = "tx" // in a transaction of the caller's, which also writes the task's id into the table marker
)

var callKinds = []callKind{plainCall, keyedCall, txCall}

func (k *call) options() []delaytask.Option {
	if k.kind == keyedCall {
		return []delaytask.Option{delaytask.WithKey(k.name)}
	}
	return nil
}

// callers save continuously, each at its own pace, whatever the answers. Half of them are patient, the others soon give
// up.
type callers struct {
	s    *scheduler.Scheduler
	db   *sql.DB
	ctx  context.Context
	quit chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	calls []call
}

// bulk is the end of each body. Without it a full table has room for small rows in pages that it already has.
var bulk = " " + strings.Repeat("x", 4<<10)

const (
	numCallers    = 12
	callEvery     = 40 * time.Millisecond
	patient       = patience
	shortPatience = 300 * time.Millisecond
)

func beginCalls(t *testing.T, s *scheduler.Scheduler, d dbtest.Database) *callers {
	t.Helper()
	db := pool(t, d, "readTimeout=2s") // Commit takes no context, and would wait for as long as a server hangs
	c := &callers{s: s, db: db, ctx: t.Context(), quit: make(chan struct{})}
	execute(t, c.db, "CREATE TABLE marker (task BIGINT PRIMARY KEY)")
	for i := range numCallers {
		c.wg.Go(func() { c.goOn(i) })
	}
	return c
}

// end waits for the running calls, and returns all calls.
func (c *callers) end() []call {
	close(c.quit)
	c.wg.Wait()
	return c.calls
}

func (c *callers) goOn(caller int) {
	pace := time.NewTicker(callEvery)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-c.quit:
			return
		case <-c.ctx.Done(): // the test has failed
			return
		case <-pace.C:
		}
		k := call{
			kind: callKinds[caller%len(callKinds)], name: fmt.Sprintf("caller %d, call %d", caller, n),
			delay: time.Duration(n*37%50) * 40 * time.Millisecond, patience: shortPatience, begun: time.Now(),
		}
		if caller%2 == 0 {
			k.patience = patient
		}
		c.make(&k)
		k.took = time.Since(k.begun)
		c.mu.Lock()
		c.calls = append(c.calls, k)
		c.mu.Unlock()
	}
}

func (c *callers) make(k *call) {
	ctx, cancel := context.WithTimeout(c.ctx, k.patience)
	defer cancel()
	if k.kind == txCall {
		k.id, k.err = c.saveWithMarker(ctx, k)
		return
	}
	k.id, k.err = c.s.SaveDelayTask(ctx, string(k.kind), k.name+bulk, k.delay, k.options()...)
}

// txWork is long enough that an outage hits transactions between their two rows.
const txWork = callEvery / 2

func (c *callers) saveWithMarker(ctx context.Context, k *call) (int64, error) {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	id, err := c.s.SaveDelayTaskTx(ctx, tx, string(k.kind), k.name+bulk, k.delay)
	if err != nil {
		return 0, err
	}
	select { // other work of the transaction
	case <-ctx.Done():
	case <-time.After(txWork):
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO marker VALUES (?)", id); err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

// tally counts the calls of each answer.
type tally struct{ accepted, unknown, refused int }

func (c *callers) tally() map[callKind]tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[callKind]tally{}
	for _, k := range c.calls {
		n := all[k.kind]
		switch {
		case k.err == nil:
			n.accepted++
		case errors.Is(k.err, delaytask.ErrOutcomeUnknown):
			n.unknown++
		default:
			n.refused++
		}
		all[k.kind] = n
	}
	return all
}

// await waits until that many more calls of each kind have an answer that counts.
func (c *callers) await(t *testing.T, what string, more int, counts func(tally) int) {
	t.Helper()
	before := c.tally()
	servertest.Eventually(t, what, func() bool {
		now := c.tally()
		for _, kind := range callKinds {
			if counts(now[kind]) < counts(before[kind])+more {
				return false
			}
		}
		return true
	})
}

func (c *callers) accept(t *testing.T, more int) {
	t.Helper()
	c.await(t, "saves are accepted", more, func(n tally) int { return n.accepted })
}

// suffer lets an outage last at least that long, and until callers of each kind have failed.
func (c *callers) suffer(t *testing.T, atLeast time.Duration) {
	t.Helper()
	enough := time.After(atLeast)
	c.await(t, "callers learn that the server is away", 1, func(n tally) int { return n.unknown + n.refused })
	<-enough
}
