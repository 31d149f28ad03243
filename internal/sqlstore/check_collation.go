package sqlstore

import (
	"context"
	"strings"
)

const exact = "utf8mb4_bin"

// The columns by which rows are told apart.
var (
	exactColumns        = []string{table + ".tag", table + ".task_key", tagTable + ".tag"}
	exactServiceColumns = []string{tokenTable + ".name", workerTable + ".app"}
)

// checkCollation looks at columns by which rows are told apart: with another collation a statement for one tag or key would also
// meet those that differ in case or accents.
func (s *Store) checkCollation(columns []string) check {
	query := "SELECT table_name AS table_name, column_name AS name, collation_name AS collation," +
		" CONCAT(column_type, ' CHARACTER SET utf8mb4 COLLATE " + exact + "'," +
		" CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE ' NULL' END," +
		" CASE column_comment WHEN '' THEN '' ELSE CONCAT(' COMMENT ', QUOTE(column_comment)) END) AS mended" +
		" FROM information_schema.columns WHERE table_schema = DATABASE()" +
		" AND CONCAT(table_name, '.', column_name) IN (" + quoted(columns) + ") ORDER BY table_name, column_name"
	return func(ctx context.Context) ([]Warning, error) {
		return nil, scan(ctx, s.db, query, nil, func(c *struct {
			Table     string  `db:"table_name"`
			Name      string  `db:"name"`
			Collation *string `db:"collation"` // NULL if it is no text
			Mended    string  `db:"mended"`
		}) error {
			collation := "none"
			if c.Collation != nil {
				collation = *c.Collation
			}
			if !strings.EqualFold(collation, exact) {
				return refuse("run: ALTER TABLE "+c.Table+" MODIFY "+c.Name+" "+c.Mended,
					"column %s.%s has the collation %s instead of %s, so different values would count as equal",
					c.Table, c.Name, collation, exact)
			}
			return nil
		})
	}
}
