package sqlstore

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"
)

// fileVersion reads the version of an embedded database on a connection of its own: SQLite counts the changes of all
// other connections, also in this process.
type fileVersion struct {
	mu   sync.Mutex
	conn *sqlx.Conn // nil until the first read, and after an error
	// opened counts the connections. Counts of two connections cannot be compared.
	opened int64
}

func (v *fileVersion) read(ctx context.Context, db *sqlx.DB) (version int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn == nil {
		if v.conn, err = db.Connx(ctx); err != nil {
			return 0, classify("open a connection that watches the file", err)
		}
		v.opened++
	}
	if err := v.conn.GetContext(ctx, &version, "PRAGMA data_version"); err != nil {
		_ = v.conn.Close() // the first error says more
		v.conn = nil
		return 0, classify("read the version of the file", err)
	}
	return v.opened<<32 + version, nil // the version has 32 bits
}

func (v *fileVersion) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn == nil {
		return nil
	}
	conn := v.conn
	v.conn = nil
	return conn.Close()
}
