package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

func TestFileVersionTellsOfWhatOtherProcessesCommit(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	open := func() *Store {
		db, kind, err := Connect(t.Context(), dsn)
		must(t, err)
		s := New(db, kind)
		t.Cleanup(func() { _ = s.Close(t.Context()); _ = db.Close() })
		return s
	}
	watching, other := open(), open()
	if !watching.HasFileVersion() {
		t.Fatal("a pool of our own spares no connection for the version of the file")
	}
	version := func() int64 {
		v, err := watching.FileVersion(t.Context())
		must(t, err)
		return v
	}
	mustExec(t, other.db.DB, "CREATE TABLE delay_task_tag "+
		"(tag TEXT PRIMARY KEY, paused INTEGER, reason TEXT, update_time TEXT)")
	mustExec(t, other.db.DB, "CREATE TABLE delay_task_schedule (look_time TEXT)")
	before := version()
	if now := version(); now != before {
		t.Errorf("version %d became %d although nothing was committed", before, now)
	}
	if _, _, err := other.Tags(t.Context()); err != nil || version() != before {
		t.Errorf("a read changed version %d, %v", before, err)
	}
	must(t, other.SetTag(t.Context(), row.TagState{Tag: "a", Paused: true}))
	if version() == before {
		t.Errorf("version %d stayed although another process has committed", before)
	}

	// A connection that fails is replaced by one with a count of its own.
	before = version()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := watching.FileVersion(ended); err == nil {
		t.Fatal("a read whose context has ended has failed not")
	}
	if version() == before {
		t.Errorf("another connection tells the version %d too", before)
	}
}
