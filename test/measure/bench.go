package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/migrations"
)

// bench is a database of its own with the tables of delaytask in it.
type bench struct {
	name  string
	db    *sqlx.DB
	store *store.Store
}

// newBench makes the database delaytask_measure_name. A leftover of an earlier run is dropped.
func newBench(ctx context.Context, dsn, name string) (*bench, error) {
	name = "delaytask_measure_" + name
	if err := remake(ctx, dsn, name); err != nil {
		return nil, err
	}
	target, err := store.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	db, kind, err := store.Connect(ctx, target.WithDatabase(name))
	if err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, db.DB, kind); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &bench{name, db, store.New(db, kind)}, nil
}

func remake(ctx context.Context, dsn, name string) error {
	server, kind, err := store.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer server.Close()
	if kind != store.MySQL {
		return errors.New("only MySQL and MariaDB are measured")
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if _, err := server.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// drop leaves nothing behind, also when the run was interrupted.
func (b *bench) drop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	_, err := b.db.ExecContext(ctx, "DROP DATABASE "+b.name)
	return errors.Join(err, b.store.Close(ctx), b.db.Close())
}

// describe names the server and the settings that a commit's cost depends on.
func (b *bench) describe(ctx context.Context) (string, error) {
	var version string
	var flush, binlog, pool int64
	err := b.db.QueryRowContext(ctx,
		"SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@innodb_buffer_pool_size>>20").
		Scan(&version, &flush, &binlog, &pool)
	return fmt.Sprintf("%s, innodb_flush_log_at_trx_commit=%d, log_bin=%d, buffer pool %d MiB",
		version, flush, binlog, pool), err
}
