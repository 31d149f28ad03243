package sqlstore_test

import (
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// A list would end at a read that is not full, and would not end where a row has another place than its index says.
func TestARowWithoutAPlaceEndsNoList(t *testing.T) {
	garbage{
		onSQLite: []string{
			"id = -1", "id = 0", "due_time = 'soon'", "due_time = 7", "due_time = ''",
			"due_time = '2026-11-25T23:00:00Z'", "due_time = '2026-11-25 23:00:00Z'",
			"due_time = '2026-11-25 23:00'", "due_time = '2026-02-30 23:00:00'",
		},
		onServers: []string{"id = 18446744073709551615", "id = 9223372036854775808", "id = 0"},
	}.each(t, func(t *testing.T, s *sqlstore.Store, pool *sqlx.DB, set string) {
		exec(t, pool.DB, "DELETE FROM delay_task_message")
		insert(t, s, task(1, ""), task(2, ""), task(3, ""))
		exec(t, pool.DB, "UPDATE delay_task_message SET "+set+" WHERE id = 2")
		for _, down := range []bool{false, true} {
			var got []int64
			span := row.Span{Status: row.Pending, Tag: "a", Down: down}
			for range 3 {
				found, err := s.Places(t.Context(), []row.Span{span}, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range found[0] {
					got, span.After = append(got, at.ID), &at
				}
			}
			if slices.Sort(got); !slices.Equal(got, []int64{1, 3}) {
				t.Errorf("down %t: one by one the list has %v, want 1 and 3", down, got)
			}
		}
	})
}
