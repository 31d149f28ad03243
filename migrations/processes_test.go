package migrations_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/migrations"
)

// processDSN makes the test binary a process that migrates that database and ends.
const processDSN = "DELAYTASK_TEST_MIGRATE_DSN"

// beProcess prints that it is ready, waits for the end of its standard input, and migrates.
func beProcess(dsn string) (code int) {
	if err := migrateOnSignal(context.Background(), dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func migrateOnSignal(ctx context.Context, dsn string) error {
	db, kind, err := sqlstore.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return migrations.Up(ctx, db.DB, kind)
}

// migrateAtOnce starts n processes, lets all of them migrate at the same moment, and waits until they have ended.
func migrateAtOnce(t *testing.T, dsn string, n int) {
	t.Helper()
	processes := make([]*servertest.Process, n)
	for i := range processes {
		processes[i] = servertest.Self(t, []string{processDSN + "=" + dsn})
	}
	for _, p := range processes {
		p.Says("^ready$")
	}
	for _, p := range processes {
		must(t, p.In.Close())
	}
	for _, p := range processes {
		p.EndsWell()
	}
}
