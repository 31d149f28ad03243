package role

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/scheduler"
)

func TestBodySaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[verb]int{}
	for range 5000 {
		_, d := drawn(r)
		seen[d.verb]++
		if got := parse(d.body("saver0.1.7")); got != d {
			t.Fatalf("%+v became %+v", d, got)
		}
	}
	for _, s := range shares {
		if seen[s.verb] == 0 {
			t.Errorf("%s never happens", s.verb)
		}
	}
	if got := parse("another text"); got.verb != succeed {
		t.Errorf("got %+v", got)
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancelCause(t.Context())
	end(delaytask.ErrStopping)
	for _, tt := range []struct {
		d    operation
		task delaytask.Task
		want journal.Class
	}{
		{operation{verb: succeed}, delaytask.Task{Attempt: 1}, journal.OK},
		{operation{slow, time.Hour}, delaytask.Task{Attempt: 1}, journal.Interrupted},
		{operation{ignore, time.Millisecond}, delaytask.Task{Attempt: 1}, journal.OK},
		{operation{verb: failOnce}, delaytask.Task{Attempt: 1}, journal.Failed},
		{operation{verb: failOnce}, delaytask.Task{Attempt: 2}, journal.OK},
		{operation{verb: fail}, delaytask.Task{Attempt: 3}, journal.Failed},
		{operation{verb: permanent}, delaytask.Task{Attempt: 1}, journal.Permanent},
		{operation{snooze, time.Second}, delaytask.Task{Version: 1}, journal.Snoozed},
		{operation{snooze, time.Second}, delaytask.Task{Version: 3}, journal.OK},
	} {
		if got := returned(tt.d.do(ended, &tt.task)); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestOnlyWhatIsKnownIsCalledKnown(t *testing.T) {
	t.Parallel()
	unknown := &delaytask.OutcomeUnknownError{ID: 7, Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		err               error
		save, tx, changed journal.Class
	}{
		{nil, journal.OK, journal.OK, journal.OK},
		{unknown, journal.Unknown, journal.Refused, journal.Unknown}, // what was not committed is not there
		{context.DeadlineExceeded, journal.Refused, journal.Refused, journal.Unknown},
		{fmt.Errorf("%w: %w", errCommit, unknown), journal.Unknown, journal.Unknown, journal.Unknown},
		{&delaytask.DuplicateError{ID: 8}, journal.Duplicate, journal.Refused, journal.Duplicate},
		{delaytask.ErrFinished, journal.Refused, journal.Refused, journal.WrongStatus},
		{errors.New("the connection was lost"), journal.Refused, journal.Refused, journal.Unknown},
	} {
		if s, x, c := saved(tt.err), txSaved(tt.err), changed(tt.err); s != tt.save || x != tt.tx || c != tt.changed {
			t.Errorf("%v: %q %q %q, want %q %q %q", tt.err, s, x, c, tt.save, tt.tx, tt.changed)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

func TestWhatIsOverdueIsCountedUpToABound(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, err := scheduler.Open(t.Context(), d.DSN, scheduler.Config{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		const insert = `INSERT INTO delay_task_message (id, tag, message_body, status, delay_time, due_time) VALUES
			(1, 'a', '', 0, 0, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE),
			(2, 'b', '', 0, 0, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
			(3, 'a', '', 0, 0, UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE),
			(4, 'a', '', 1, 0, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)`
		if _, err := db.ExecContext(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
		for most, want := range []int{0, 1, 2, 2} {
			if n, err := overdue(t.Context(), db, most); n != want || err != nil {
				t.Errorf("of %d at most: %d, %v", most, n, err)
			}
		}
	})
}
