package sqlstore

import (
	"context"
	"fmt"
	"strings"
)

func (s *Store) checkPool(context.Context) ([]Warning, error) {
	least := needed(s.concurrency)
	if most := s.db.Stats().MaxOpenConnections; most > 0 && most < least {
		const hint = "call SetMaxOpenConns with at least %d and what the application uses itself, or lower Concurrency"
		return nil, refuse(fmt.Sprintf(hint, least),
			"the pool has %d connections, and a concurrency of %d needs %d: %d, and one for each task, counted as %d to %d",
			most, s.concurrency, least, readers, fewest, len(turns))
	}
	return nil, nil
}

func (s *Store) checkEngine(tables []string) check {
	query := "SELECT table_name AS name, engine AS engine FROM information_schema.tables" +
		" WHERE table_schema = DATABASE() AND table_name IN (" + quoted(tables) + ")"
	return func(ctx context.Context) ([]Warning, error) {
		return nil, scan(ctx, s.db, query, nil, func(t *struct {
			Name   string `db:"name"`
			Engine string `db:"engine"`
		}) error {
			if !strings.EqualFold(t.Engine, "InnoDB") {
				return refuse("run: ALTER TABLE "+t.Name+" ENGINE=InnoDB",
					"table %s has the engine %s, which knows no transactions", t.Name, t.Engine)
			}
			return nil
		})
	}
}

// quoted lists names of our own, which hold nothing to escape.
func quoted(names []string) string { return "'" + strings.Join(names, "', '") + "'" }
