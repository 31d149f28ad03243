package fault

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// fullDisk fills the disk on which the server keeps its data, where that is one of its own, until the server itself says so.
type fullDisk struct{ file string }

// ballast is what the server is given to store, so that it asks for more space at once: in all, more than it takes at a time.
const (
	ballast      = "REPEAT('x', 65536)"
	ballastTimes = 1000
)

func (f *fullDisk) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	if w.Disk == "" {
		return Scar{}, ErrNothing
	}
	f.file = filepath.Join(w.Disk, "full")
	file, err := os.Create(f.file)
	if err != nil {
		return Scar{}, err
	}
	defer file.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return Scar{}, err
	}
	for range ballastTimes {
		if _, err := w.Admin.ExecContext(ctx, "INSERT INTO chaos_ballast (content) VALUES ("+ballast+")"); err != nil {
			return Scar{Saw: err.Error()}, nil
		}
	}
	return Scar{}, ErrNothing
}

func (f *fullDisk) End(ctx context.Context, w *World) error {
	if f.file == "" {
		return nil
	}
	if err := os.Remove(f.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	const empty = "TRUNCATE chaos_ballast"
	if _, err := w.Admin.ExecContext(ctx, empty); err == nil {
		return nil
	}
	if err := w.Server.Start(ctx); err != nil { // some servers give up when they have no space
		return err
	}
	_, err := w.Admin.ExecContext(ctx, empty)
	return err
}
