package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// older is this program as it was.
type older struct{ commit, program string }

// setOld builds that program from its commit, where the run asks for one.
func (s *stage) setOld(ctx context.Context) (err error) {
	if s.opts.old == "" {
		return nil
	}
	if s.old.commit, err = output(exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--short=12", s.opts.old+"^{commit}")); err != nil {
		return err
	}
	tree := filepath.Join(s.dir, "old")
	s.old.program = tree + ".chaos"
	s.later(func() error { return os.RemoveAll(s.old.program) })
	defer os.RemoveAll(tree)
	const script = `mkdir "$1" && git -C "$2" archive "$0" | tar -x -C "$1" && go -C "$1/test/chaos" build -o "$1.chaos" .`
	_, err = output(exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script, s.old.commit, tree, s.root))
	return err
}

// output returns what the command says.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("build an older program: %s: %w: %s", cmd, err, said)
	}
	return said, nil
}
