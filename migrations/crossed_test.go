package migrations

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMigrationsRunAgainWhenTheyCrossAnothersOnly(t *testing.T) {
	refused := func(number uint16) error { return fmt.Errorf("partial: %w", &mysql.MySQLError{Number: number}) }
	for _, tt := range []struct {
		name string
		errs []error // of one run after the other, then none
		runs int
	}{
		{"nobody else", nil, 1},
		{"a table that was replaced meanwhile", []error{refused(1467)}, 2},
		{"deadlock, then certification", []error{refused(1213), refused(3101)}, 3},
		{"a connection that was cut", []error{mysql.ErrInvalidConn}, 2},
		{"no privilege", []error{refused(1142)}, 1},
		{"no connection", []error{errors.New("connection refused")}, 1},
		{"always in the way", []error{refused(1213), refused(1213), refused(1213), refused(1213), refused(1213), refused(1213),
			refused(1213), refused(1213), refused(1213)}, mostTries},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := 0
			var said error
			err := again(t.Context(), func() error {
				said = nil
				if runs < len(tt.errs) {
					said = tt.errs[runs]
				}
				runs++
				return said
			})
			if runs != tt.runs || !errors.Is(err, said) {
				t.Errorf("%d runs, want %d; got %v, want %v", runs, tt.runs, err, said)
			}
		})
	}
}
