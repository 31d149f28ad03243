package lateness

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestAnotherClockIsSeen(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		separator := "?"
		if strings.Contains(db.DSN, "?") {
			separator = "&"
		}
		for parameter, want := range map[string]error{"": nil, "timestamp=1772366400": ErrOtherClock} { // stands still in 2026
			pool, err := sql.Open("mysql", db.DSN+separator+parameter)
			if err != nil {
				t.Fatal(err)
			}
			if err := SameClock(t.Context(), pool); !errors.Is(err, want) {
				t.Errorf("with %q: %v, want %v", parameter, err, want)
			}
			if err := ClockAhead(t.Context(), pool, time.Second); !errors.Is(err, ErrOtherClock) {
				t.Errorf("with %q, ahead by a second: %v", parameter, err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
