// Package record keeps what runs have shown: a line of JSON for each, with the code that was run, and the tables of a document that
// are made from those lines.
package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
)

// Source is what was run.
type Source struct {
	Commit  string
	Changed bool   // the tree has changes that are not in the commit
	Code    string // of the folders whose change makes older runs worth nothing, without their tests
}

// Engine is the folders of the engine and of what it is made of.
var Engine = []string{
	"internal/engine", "internal/cluster", "internal/clock", "internal/timer", "internal/batch", "scanner",
}

// SourceNow asks git, at the root of the repository, for the code of the folders. What the files of the record themselves have
// gained does not count as a change.
func SourceNow(ctx context.Context, folders []string, files ...string) (s Source, err error) {
	if s.Commit, err = git(ctx, "rev-parse", "--short=12", "HEAD"); err != nil {
		return s, err
	}
	asked := []string{"status", "--porcelain", "--", "."}
	for _, file := range files {
		asked = append(asked, ":!"+file)
	}
	status, err := git(ctx, asked...)
	if err != nil {
		return s, err
	}
	s.Changed = status != ""
	tree, err := git(ctx, append([]string{"ls-tree", "-r", "HEAD", "--"}, folders...)...)
	if err != nil {
		return s, err
	}
	all := sha256.New()
	for line := range strings.Lines(tree + "\n") {
		if !strings.HasSuffix(line, "_test.go\n") {
			all.Write([]byte(line))
		}
	}
	s.Code = hex.EncodeToString(all.Sum(nil))[:12]
	return s, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("ask git for %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
