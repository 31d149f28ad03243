package migrations

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3/database"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// versionTable has a name of its own, because the application may use goose for its migrations.
const versionTable = "delay_task_goose_version"

// versions is goose's list of applied migrations, made safe for processes that start at once without a common lock. The
// table may be created twice, an entry is not written twice, and version 0, which goose expects, needs no entry.
type versions struct {
	database.Store
	create, exists string
	applied        func() // is called after each migration
}

func newVersions(kind sqlstore.Kind) (*versions, error) {
	v := &versions{
		create: `CREATE TABLE IF NOT EXISTS ` + versionTable + ` (
			id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
			version_id BIGINT NOT NULL,
			is_applied BOOLEAN NOT NULL,
			tstamp TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,
			PRIMARY KEY (id),
			UNIQUE KEY (version_id)
		) ENGINE=InnoDB`,
		exists: `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`,
	}
	dialect := database.DialectMySQL
	if kind == sqlstore.SQLite {
		dialect = database.DialectSQLite3
		v.create = `CREATE TABLE IF NOT EXISTS ` + versionTable + ` (
			id INTEGER PRIMARY KEY AUTOINCREMENT,
			version_id INTEGER NOT NULL,
			is_applied INTEGER NOT NULL,
			tstamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP
		)`
		v.exists = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`
	}
	var err error
	v.Store, err = database.NewStore(dialect, versionTable)
	return v, err
}

func (v *versions) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, v.exists, versionTable).Scan(&n)
	return n > 0, err
}

func (v *versions) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	if _, err := db.ExecContext(ctx, v.create); err != nil {
		return fmt.Errorf("create %s: %w", versionTable, err)
	}
	return nil
}

func (v *versions) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	const insert = `INSERT INTO ` + versionTable + ` (version_id, is_applied)
		SELECT v, 1 FROM (SELECT ? AS v) n WHERE NOT EXISTS (SELECT 1 FROM ` + versionTable + ` WHERE version_id = ?)`
	if _, err := db.ExecContext(ctx, insert, req.Version, req.Version); err != nil {
		return fmt.Errorf("note migration %d: %w", req.Version, err)
	}
	if req.Version > 0 {
		v.applied()
	}
	return nil
}

func (v *versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	found, err := v.Store.ListMigrations(ctx, db)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		found = append(found, &database.ListMigrationsResult{Version: 0, IsApplied: true})
	}
	return found, nil
}
