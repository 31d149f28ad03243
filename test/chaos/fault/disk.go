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

// fullDisk fills the disk on which the server keeps its data, where that is one of its own.
type fullDisk struct{ file string }

func (f *fullDisk) Begin(_ context.Context, w *World, _ *rand.Rand) (Scar, error) {
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
	return Scar{Saw: "no space is left"}, nil
}

func (f *fullDisk) End(context.Context, *World) error {
	if f.file == "" {
		return nil
	}
	if err := os.Remove(f.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
