package record

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Source is what was run.
type Source struct {
	Commit  string
	Changed bool   // the tree has changes that are not in the commit
	Code    string // the hash of the declarations that decide, see [Code]
}

// Seeds is the folders whose code decides how a simulated cluster behaves.
var Seeds = []string{
	"internal/batch", "internal/clock", "internal/cluster", "internal/engine", "internal/lifecycle", "internal/memstore",
	"internal/row", "internal/runqueue", "internal/save", "internal/store", "internal/timer", "processor", "scanner",
}

// Root returns the root of the repository that the working directory is in.
func Root(ctx context.Context) (string, error) { return git(ctx, "rev-parse", "--show-toplevel") }

// Source asks git what is in the repository at root. Changes of the record and of its documents do not count.
func (r Record[Line]) Source(ctx context.Context, root string, folders []string) (s Source, err error) {
	if s.Commit, err = git(ctx, "-C", root, "rev-parse", "--short=12", "HEAD"); err != nil {
		return s, err
	}
	asked := []string{"-C", root, "status", "--porcelain", "--", ".", ":!" + r.File}
	for file := range r.Documents {
		asked = append(asked, ":!"+file)
	}
	status, err := git(ctx, asked...)
	if err != nil {
		return s, err
	}
	s.Changed = status != ""
	s.Code, err = Code(root, folders)
	return s, err
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("ask git for %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
