package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

const (
	largeLog  = 256 << 20 // bytes: SQLite begins the log anew at 4 MiB when no read is open
	quickSize = 64 << 20  // bytes: a file that is read whole in a moment
)

// checkFile looks at the file of an embedded database.
func checkFile(ctx context.Context, s *Subject) (found []Finding, err error) {
	path, err := s.inspect.File(ctx)
	if err != nil {
		return nil, err
	}
	mode, err := s.inspect.Pragma(ctx, "journal_mode")
	if err != nil {
		return nil, err
	}
	if mode != "wal" {
		found = append(found, Finding{"journal_mode", Warning, "journal_mode is " + mode,
			"each write stops all reads; the file system may lack shared memory, as networks do",
			"move the file to a local disk"})
	}
	info, err := os.Stat(path)
	if err != nil {
		return found, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && runtime.GOOS != "windows" {
		found = append(found, Finding{"file_mode", Warning,
			fmt.Sprintf("other users of this machine may open %s (%v)", path, info.Mode().Perm()),
			"they can read the bodies of tasks, or change tasks", "chmod 600 '" + path + "'"})
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > largeLog {
		found = append(found, Finding{"wal", Warning,
			fmt.Sprintf("the log beside the file has %d MiB", log.Size()>>20),
			"a connection keeps a read open, so that SQLite cannot begin the log anew; reads become slow",
			"sqlite3 '" + path + "' 'PRAGMA wal_checkpoint(TRUNCATE)'"})
	}
	if info.Size() > quickSize {
		return found, nil // it would take long to read
	}
	if state, err := s.inspect.Pragma(ctx, "quick_check(1)"); err != nil || state != "ok" {
		if err != nil {
			return found, err
		}
		found = append(found, Finding{"file_damaged", Critical, "the file is damaged: " + strconv.Quote(state),
			"tasks may be missing or unreadable", "sqlite3 '" + path + "' .recover | sqlite3 new.db"})
	}
	return found, nil
}
