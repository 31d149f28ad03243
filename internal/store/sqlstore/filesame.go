package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// sameFile notices that another file, or none, has taken the name of an embedded database. The connections go on
// writing to the old file, which no other process finds, and which is gone when they are closed. The name is the one
// that SQLite has opened, after symbolic links. A server has none.
type sameFile struct {
	mu     sync.Mutex
	looked bool
	name   string // "" for what is no file
	first  os.FileInfo
	gone   error // for good: from then on connections may have opened either file
}

// check returns an error of [row.ClassOperator] when the file is no longer the one that was opened. on asks SQLite for
// the name of the file once.
func (f *sameFile) check(ctx context.Context, on queryer) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return f.gone
	}
	if !f.looked {
		if err := f.look(ctx, on); err != nil {
			return err
		}
	}
	if f.first == nil {
		return nil
	}
	now, err := os.Stat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.gone = f.error("it was deleted or renamed")
	case err == nil && !os.SameFile(f.first, now):
		f.gone = f.error("another file has its name")
	}
	return f.gone // a file that cannot be looked at may still be written to
}

func (f *sameFile) look(ctx context.Context, on queryer) (err error) {
	if f.name, err = fileName(ctx, on); err != nil {
		return notSent("find the file of the database", err)
	}
	if f.name != "" {
		f.first, err = os.Stat(f.name)
	}
	f.looked = f.name == "" || err == nil
	if errors.Is(err, fs.ErrNotExist) {
		f.looked, f.gone = true, f.error("it was deleted or renamed")
	}
	return f.gone
}

func (f *sameFile) error(what string) error {
	return &row.Error{
		Class: row.ClassOperator, Op: "write to " + f.name, Err: fmt.Errorf("%w: %s", delaytask.ErrFileReplaced, what),
		Hint: "put the old file back to keep its tasks, then restart this process, which opens the file that is there",
	}
}

// fileName returns the file of an embedded database, "" when it is in memory.
func fileName(ctx context.Context, on queryer) (string, error) {
	rows, err := readTexts(ctx, on, "PRAGMA database_list")
	for _, r := range rows {
		if r["name"] == "main" {
			return r["file"], nil
		}
	}
	return "", err
}
