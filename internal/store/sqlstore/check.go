package sqlstore

import "context"

// Check reports whether the store can work on the database, before anything relies on it. The error is a *row.Error:
// its text is a sentence that says what is wrong, and its hint says what to do. The longest body that will be saved has
// bodyLimit bytes.
func (s *Store) Check(ctx context.Context, bodyLimit int) ([]Warning, error) {
	return all(ctx, s.startChecks(bodyLimit))
}

// CheckService checks the tables that the HTTP service alone needs: they are there, whole and writable. Its error is
// like the error of [Store.Check].
func (s *Store) CheckService(ctx context.Context) error {
	if err := CheckWritable(ctx, s.db.DB.DB, s.dialect.kind); err != nil {
		return err
	}
	_, err := all(ctx, s.serviceChecks())
	return err
}

// CheckReads is Check for a process that only reads, as on a server that is read-only: the tables are there and whole.
func (s *Store) CheckReads(ctx context.Context) error { return s.checkRead(ctx, tables) }

// CheckServiceReads is CheckService for a process that only reads.
func (s *Store) CheckServiceReads(ctx context.Context) error { return s.checkRead(ctx, serviceTables) }

func (s *Store) checkRead(ctx context.Context, tables []string) error {
	if err := RefuseSharded(ctx, s.db.DB.DB, s.dialect.kind); err != nil {
		return err
	}
	_, err := s.checkSchema(tables)(ctx)
	return classify("check the database", err)
}

// StartChecks returns the parts of [Store.Check], in their order.
func (i Inspector) StartChecks(bodyLimit int) []StartCheck { return i.s.startChecks(bodyLimit) }

// ServiceChecks returns the parts of [Store.CheckService], in their order.
func (i Inspector) ServiceChecks() []StartCheck { return i.s.serviceChecks() }

func (s *Store) startChecks(bodyLimit int) []StartCheck {
	if s.dialect.kind == SQLite {
		return []StartCheck{
			{CheckSchema, s.checkSchema(tables)}, {CheckPrivileges, s.checkPrivileges(tables)},
			{"time", s.checkTime}, {"settings", s.checkSQLite}, {"counter", s.checkCounter},
		}
	}
	return []StartCheck{
		{"pool", s.checkPool}, {CheckProduct, s.checkProduct}, {"server", s.checkServer(bodyLimit)},
		{CheckSchema, s.checkSchema(tables)}, {"collation", s.checkCollation(exactColumns)},
		{"engine", s.checkEngine(tables)}, {CheckPrivileges, s.checkPrivileges(tables)},
		{"time", s.checkTime}, {"counter", s.checkCounter},
	}
}

func (s *Store) serviceChecks() []StartCheck {
	checks := []StartCheck{
		{CheckSchema, s.checkSchema(serviceTables)}, {CheckPrivileges, s.checkPrivileges(serviceTables)},
	}
	if s.dialect.kind == SQLite {
		return checks
	}
	return append(checks, StartCheck{"collation", s.checkCollation(exactServiceColumns)},
		StartCheck{"engine", s.checkEngine(serviceTables)})
}

// all runs the checks up to the first that fails, and returns the first of its errors.
func all(ctx context.Context, checks []StartCheck) (warnings []Warning, err error) {
	for _, check := range checks {
		found, errs := check.Run(ctx)
		if len(errs) > 0 {
			return nil, errs[0]
		}
		warnings = append(warnings, found...)
	}
	return warnings, nil
}

// checkTime sends a moment to the database and back through a connection of the pool, whose settings may change times.
func (s *Store) checkTime(ctx context.Context) ([]Warning, error) {
	before, err := readClock(ctx, s.dialect, s.db)
	if err != nil {
		return nil, err
	}
	query := "SELECT CAST(CAST(? AS " + s.dialect.timeType + ") AS CHAR) AS db_time, 'x' AS db_server"
	_, back, err := readAll(ctx, s.db, clause{query, []any{before.Time}}, noTable)
	if err == nil && back.Time != before.Time {
		err = refuse("report this with the server's version and the DSN without its password",
			"a moment does not survive the way to the database and back: sent %s, got %s", before.Time, back.Time)
	}
	return nil, err
}

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
		warnings = append(warnings, Warning{"synchronous", "synchronous is not FULL",
			"accepted tasks can be lost at a power cut", "open the file with _pragma=synchronous(FULL)"})
	}
	if busyTimeout == 0 {
		warnings = append(warnings, Warning{"busy_timeout", "busy_timeout is 0",
			"a write fails at once when another process writes", "open the file with _pragma=busy_timeout(5000)"})
	}
	return warnings, nil
}
