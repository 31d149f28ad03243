package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/doctor"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// popsOn names the database from which a process of this test takes a task, before it is killed.
const popsOn = "DELAYTASK_TEST_POPS_ON"

func TestALeaseAheadOfAClockThatWasSetBackIsFoundAndEnded(t *testing.T) {
	if dsn := os.Getenv(popsOn); dsn != "" {
		popOne(t, dsn)
		fmt.Println("popped")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	}
	t.Parallel()
	clock := filepath.Join(t.TempDir(), "clock")
	set := func(offset string) {
		servertest.OK(t, os.WriteFile(clock+".new", []byte(offset), 0o600))
		servertest.OK(t, os.Rename(clock+".new", clock)) // the server reads it at any time
	}
	set("+0")
	env, err := clockEnv("FAKETIME_TIMESTAMP_FILE="+clock, "FAKETIME_NO_CACHE=1")
	if errors.Is(err, errNoFaketime) {
		t.Skip(err)
	}
	servertest.OK(t, err)
	dsn := dbtest.NewDisposable(t, dbtest.MariaDB, env...).Database(t).DSN
	s, err := scheduler.Open(t.Context(), dsn, scheduler.Config{Migrate: true})
	servertest.OK(t, err)
	_, err = s.SaveDelayTask(t.Context(), "t", "", 0)
	servertest.OK(t, errors.Join(err, s.Stop(t.Context())))
	gone := servertest.Self(t, []string{popsOn + "=" + dsn}, "-test.run=^"+t.Name()+"$")
	gone.Says("popped")
	gone.Kill()
	set("-1h")

	found := examine(t, dsn)
	i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Code == "leases_ahead" })
	if i < 0 {
		t.Fatalf("the doctor finds %+v", found)
	}
	servertest.Exec(t, dsn, found[i].Fix)
	popOne(t, dsn)
}

// popOne takes a task, and gives nothing back.
func popOne(t *testing.T, dsn string) {
	t.Helper()
	s, err := scheduler.Open(t.Context(), dsn, scheduler.Config{Logger: slog.New(slog.DiscardHandler)})
	servertest.OK(t, err)
	servertest.OK(t, s.Start(t.Context()))
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	popped, err := s.Pop(t.Context(), "t", delaytask.PopWait(30*time.Second))
	if len(popped) != 1 {
		t.Fatalf("popped %+v, %v", popped, err)
	}
}

func examine(t *testing.T, dsn string) []doctor.Finding {
	t.Helper()
	db, kind, err := sqlstore.Connect(t.Context(), dsn)
	servertest.OK(t, err)
	defer func() { _ = db.Close() }()
	st := sqlstore.New(db, kind)
	defer func() { _ = st.Close(t.Context()) }()
	return doctor.Examine(t.Context(), doctor.Subject{Store: st, DB: db.DB, Kind: kind, BodyLimit: 1 << 20}).Findings
}
