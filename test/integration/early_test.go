//go:build unix

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// The first thing that the processor does is to read the database's clock. Tasks are claimed ahead of their due times,
// in batches, so a start that does not wait for the exact moment is up to 100 ms early.
func TestNoProcessorIsCalledBeforeTheDatabasesClockSaysSo(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		const tasks = 60
		s, db := open(t, d), pool(t, d)
		precision := time.Microsecond
		if d.Kind == dbtest.SQLite {
			precision = time.Millisecond // of its function for the current time
		}
		early := make(chan time.Duration, tasks+100)
		read := func(ctx context.Context) (time.Time, error) {
			var text string
			err := db.QueryRowContext(ctx, "SELECT CAST("+now(d, "0")+" AS CHAR)").Scan(&text)
			if err != nil {
				return time.Time{}, err
			}
			return time.Parse("2006-01-02 15:04:05", strings.TrimSpace(text))
		}
		serve(t, s, "t", func(ctx context.Context, task *delaytask.Task) error {
			clock, err := read(ctx)
			if err != nil {
				return err
			}
			early <- task.Due.Sub(clock)
			return nil
		})
		for i := range tasks {
			save(t, s, "t", 200*time.Millisecond+time.Duration(i%20)*25*time.Millisecond)
		}
		for range tasks {
			if by := servertest.Receive(t, early, "a task runs"); by >= precision {
				t.Errorf("a processor was called %v before its task was due", by)
			}
		}
	})
}
