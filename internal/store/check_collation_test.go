package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/row"
)

func TestCheckRefusesAnInexactCollationAndSaysHowToMendIt(t *testing.T) {
	tests := []struct{ table, column, definition, ending string }{
		{"delay_task_message", "tag", "VARCHAR(128)", " NOT NULL COMMENT 'which processor''s'"},
		{"delay_task_message", "task_key", "VARCHAR(255)", " NULL"},
		{"delay_task_tag", "tag", "VARCHAR(128)", " NOT NULL"},
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		for _, tt := range tests {
			t.Run(tt.table+"."+tt.column, func(t *testing.T) {
				exec(t, pool.DB, "ALTER TABLE "+tt.table+" MODIFY "+tt.column+" "+tt.definition+
					" CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"+tt.ending)
				_, err := s.Check(t.Context(), bodyLimit)
				e, ok := errors.AsType[*row.Error](err)
				if !ok || e.Class != row.ClassOperator {
					t.Fatalf("error %v, want one for the operator", err)
				}
				want := "column " + tt.table + "." + tt.column + " has the collation utf8mb4_general_ci instead of utf8mb4_bin"
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
				mend := strings.TrimPrefix(e.Hint, "run: ")
				before := described(t, pool, tt.table, tt.column)
				exec(t, pool.DB, mend)
				if _, err := s.Check(t.Context(), bodyLimit); err != nil {
					t.Errorf("after %q: %v", mend, err)
				}
				if after := described(t, pool, tt.table, tt.column); after != before {
					t.Errorf("%q made %s of %s", mend, after, before)
				}
			})
		}
	})
}

// described is everything about a column but its collation.
func described(t *testing.T, pool *sqlx.DB, table, column string) string {
	t.Helper()
	var kind, nullable, comment string
	query := "SELECT column_type, is_nullable, column_comment FROM information_schema.columns" +
		" WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?"
	if err := pool.QueryRowContext(t.Context(), query, table, column).Scan(&kind, &nullable, &comment); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s, NULL: %s, comment %q", kind, nullable, comment)
}
