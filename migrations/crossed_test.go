package migrations

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMigrationsRunAgainWhenTheyCrossAnothersOnly(t *testing.T) {
	refused := func(number uint16) error { return fmt.Errorf("partial: %w", &mysql.MySQLError{Number: number}) }
	f := func(name string, runs int, errs ...error) { // of one run after the other, then none
		t.Helper()
		met := 0
		var said error
		err := again(t.Context(), func() error {
			said = nil
			if met < len(errs) {
				said = errs[met]
			}
			met++
			return said
		})
		if met != runs || !errors.Is(err, said) {
			t.Errorf("%s: %d runs, want %d; got %v, want %v", name, met, runs, err, said)
		}
	}
	f("nobody else", 1)
	f("a table that was replaced meanwhile", 2, refused(1467))
	f("deadlock, then certification", 3, refused(1213), refused(3101))
	f("a connection that was cut", 2, mysql.ErrInvalidConn)
	f("no privilege", 1, refused(1142))
	f("no connection", 1, errors.New("connection refused"))
	f("always in the way", mostTries, slices.Repeat([]error{refused(1213)}, 9)...)
}
