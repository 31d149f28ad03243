package sqlstore

import "context"

const synchronousFull = 2 // as PRAGMA synchronous shows it

func (s *Store) checkSQLite(ctx context.Context) ([]Warning, error) {
	var synchronous, busyTimeout int
	if err := s.db.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous); err != nil {
		return nil, err
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&busyTimeout); err != nil {
		return nil, err
	}
	var warnings []Warning
	if synchronous < synchronousFull {
		warnings = append(warnings, "synchronous is not FULL: accepted tasks can be lost at a power cut; "+
			"open the file with _pragma=synchronous(FULL)")
	}
	if busyTimeout == 0 {
		warnings = append(warnings, "busy_timeout is 0: a write fails at once when another process writes; "+
			"open the file with _pragma=busy_timeout(5000)")
	}
	return warnings, nil
}
