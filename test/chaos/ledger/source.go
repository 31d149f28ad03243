package ledger

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
	Code    string // of engine and store
}

// judged are the folders whose change makes older runs worth nothing.
var judged = []string{"internal/engine", "internal/store"}

// SourceNow asks git. What the record itself has gained does not count as a change.
func SourceNow(ctx context.Context, record string) (s Source, err error) {
	if s.Commit, err = git(ctx, "rev-parse", "--short=12", "HEAD"); err != nil {
		return s, err
	}
	status, err := git(ctx, "status", "--porcelain", "--", ".", ":!"+record, ":!docs/reliability.md")
	if err != nil {
		return s, err
	}
	s.Changed = status != ""
	all := sha256.New()
	for _, folder := range judged {
		tree, err := git(ctx, "rev-parse", "HEAD:"+folder)
		if err != nil {
			return s, err
		}
		all.Write([]byte(tree))
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
