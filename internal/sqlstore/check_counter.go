package sqlstore

import (
	"context"
	"regexp"
	"strconv"

	"github.com/delaytask/delaytask/internal/cluster"
)

// checkCounter warns when the next plain INSERT gets an id that no process can name. A database that does not tell its
// counter is not judged.
func (s *Store) checkCounter(ctx context.Context) ([]Warning, error) {
	var warnings []Warning
	_ = scan(ctx, s.db, s.dialect.counter, nil, func(c *counter) error {
		if c.next() > cluster.Last {
			warnings = append(warnings, Warning("each plain INSERT gets an id beyond the last one, and is late or refused; "+
				"run: "+s.dialect.countOn))
		}
		return nil
	})
	return warnings, nil
}

// counter is what a database tells of the ids of plain INSERTs.
type counter struct {
	Table   string `db:"Table"`
	Created string `db:"Create Table"` // the statement that makes the table as it is
	Last    *int64 `db:"last_id"`
}

// autoIncrement is an option of a table, which stand behind its columns and before its comment.
var autoIncrement = regexp.MustCompile(`\n\)[^']* AUTO_INCREMENT=(\d+)`)

// next returns the id of the next plain INSERT, 0 when it is not told.
func (c *counter) next() uint64 {
	if c.Last != nil {
		return uint64(max(*c.Last, 0)) + 1
	}
	told := autoIncrement.FindStringSubmatch(c.Created)
	if told == nil {
		return 0
	}
	next, _ := strconv.ParseUint(told[1], 10, 64) // the largest one when it is larger
	return next
}
