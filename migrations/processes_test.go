package migrations_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
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
	input, release, err := os.Pipe() // one for all: closing it is the signal
	must(t, err)
	defer input.Close()
	defer release.Close()
	processes, errors := make([]*exec.Cmd, n), make([]bytes.Buffer, n)
	ready := make([]io.Reader, n)
	for i := range processes {
		p := exec.CommandContext(t.Context(), os.Args[0])
		p.Env = append(os.Environ(), processDSN+"="+dsn)
		p.Stdin, p.Stderr = input, &errors[i]
		if ready[i], err = p.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
		must(t, p.Start())
		processes[i] = p
	}
	for i := range ready {
		if _, err := fmt.Fscanln(ready[i], new(string)); err != nil {
			t.Errorf("process %d is not ready: %v", i, err)
		}
	}
	must(t, release.Close())
	for i, p := range processes {
		if err := p.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, &errors[i])
		}
	}
}
