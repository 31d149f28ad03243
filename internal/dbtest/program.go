package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is a place where a program that is no test gets databases.
type Source struct {
	Kind   Kind
	server *server // nil for SQLite
}

// Sources returns where databases of the kinds can be had: files for SQLite, else the servers that tests would find too. Without
// kinds it looks for all of them. A kind that was asked for, here or by DELAYTASK_REQUIRE_DB, and that is missing is an error.
// Close ends the servers that were started.
func Sources(kinds ...Kind) ([]Source, error) {
	var sources []Source
	for _, kind := range []Kind{SQLite, MariaDB, MySQL} {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		if kind == SQLite {
			sources = append(sources, Source{Kind: SQLite})
			continue
		}
		servers := found().of(kind)
		if len(servers) == 0 && (len(kinds) > 0 || required(kind)) {
			return nil, fmt.Errorf("no %s here: %s", kind, found().why())
		}
		for _, s := range servers {
			sources = append(sources, Source{Kind: kind, server: s})
		}
	}
	return sources, nil
}

// Create makes an empty database. The function drops it.
func (s Source) Create(ctx context.Context) (Database, func() error, error) {
	if s.server != nil {
		return s.server.create(ctx)
	}
	dir, err := os.MkdirTemp("", "delaytask-db-")
	if err != nil {
		return Database{}, nil, err
	}
	db := Database{Kind: SQLite, DSN: "sqlite:" + filepath.Join(dir, "test.db"), Server: "SQLite"}
	return db, func() error { return os.RemoveAll(dir) }, nil
}

func required(kind Kind) bool {
	return slices.Contains(strings.Split(os.Getenv("DELAYTASK_REQUIRE_DB"), ","), string(kind))
}

// Close ends the servers that were started for this process.
func Close() error {
	var errs []error
	for _, s := range state.servers {
		if s.stop != nil {
			errs = append(errs, s.stop())
		}
	}
	return errors.Join(errs...)
}
