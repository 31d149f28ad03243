package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const mutations = "test/lab/mutations"

// suspectTests are what could notice a mutation, the quick ones first.
var suspectTests = []string{
	"./internal/clock ./internal/timer ./internal/batch ./internal/cluster ./scanner ./processor",
	"./internal/engine", "./internal/memstore ./internal/store", ".", "./internal/sim", "./test/integration",
}

// mutate breaks a copy of the tree in each way and runs the tests that should notice.
func mutate(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("only", "", "words, separated by commas: mutations whose names hold one of them")
	search := flags.Bool("search", false, "run all tests that could notice, and name those that do")
	limit := flags.Duration("limit", 5*time.Minute, "how long the tests of one mutation may take; one that hangs is noticed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := readMutations(mutations)
	if err != nil {
		return err
	}
	words := strings.Split(*only, ",")
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m.name, w) })
	})
	root, err := os.MkdirTemp("", "delaytask-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := copyTree(ctx, root); err != nil {
		return err
	}
	survived := 0
	for _, m := range all {
		killers := m.killers
		if *search {
			killers = suspectTests
		}
		begin := time.Now()
		by, err := m.try(ctx, root, killers, *limit)
		if err != nil {
			return err
		}
		if len(by) == 0 {
			survived++
			by = []string{"NOTHING"}
		}
		_, _ = fmt.Fprintf(out, "%-44s killed by %s (%ds)\n", m.name, strings.Join(by, ", "), int(time.Since(begin).Seconds()))
	}
	_, _ = fmt.Fprintf(out, "%d of %d mutations killed\n", len(all)-survived, len(all))
	if survived > 0 {
		return fmt.Errorf("%w: %d of %d", errSurvived, survived, len(all))
	}
	return nil
}

// copyTree copies what git knows of the tree, as it stands in the folder.
func copyTree(ctx context.Context, to string) error {
	script := `git ls-files -z --cached --others --exclude-standard | tar --null --create --files-from - | tar --extract --directory "$0"`
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script, to)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the tree: %w: %s", err, said)
	}
	return nil
}

// try breaks the copy, runs tests until some fail, and mends it. It returns which have failed.
func (m *mutation) try(ctx context.Context, root string, killers []string, limit time.Duration) (by []string, err error) {
	mend, err := m.apply(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mend()) }()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, killer := range killers {
		if by, err = m.test(ctx, root, killer); len(by) > 0 || err != nil {
			return by, err
		}
	}
	return nil, nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^panic: (.*)`)

// test runs go test in the copy and returns the tests that failed.
func (m *mutation) test(ctx context.Context, root, args string) (failed []string, err error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1"}, strings.Fields(args)...)...)
	command.Dir = filepath.Clean(root)
	command.WaitDelay = 10 * time.Second
	said, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return []string{"the time limit"}, nil
	}
	if err == nil {
		if bytes.Contains(said, []byte("[no tests to run]")) {
			return nil, fmt.Errorf("%s: go test %s ran no test", m.name, args)
		}
		return nil, nil
	}
	for _, f := range failure.FindAllSubmatch(said, -1) {
		failed = append(failed, string(bytes.TrimSpace(append(f[1], f[2]...))))
	}
	if len(failed) == 0 {
		return nil, fmt.Errorf("%s: go test %s: %w: %s", m.name, args, err, said)
	}
	slices.Sort(failed)
	return slices.Compact(failed), nil
}
