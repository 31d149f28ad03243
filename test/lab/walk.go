package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/delaytask/delaytask/"

// uncounted are packages and files that a walk passes without a decision: rows, metrics, traces and memory pages.
var uncounted = []string{
	"internal/row/", "internal/metrics/", "internal/server/traces/",
	"internal/runqueue/timer/pages.go",
	"spans.go", "internal/core/tracing.go",
}

// walked are the files that run a statement in each of many walks.
type walked struct {
	name  string
	files []string
}

// inside counts the files of the engine and the run queue.
func (w walked) inside() (n int) {
	for _, file := range w.files {
		if strings.HasPrefix(file, "internal/engine/") || strings.HasPrefix(file, "internal/runqueue/") {
			n++
		}
	}
	return n
}

// head says how many they are.
func (w walked) head() string {
	return fmt.Sprintf("%s: %d files, %d of engine and runqueue", w.name, len(w.files), w.inside())
}

// walk shows the files of both walks.
func walk(ctx context.Context, out io.Writer) error {
	all, err := walks(ctx)
	for _, w := range all {
		_, _ = fmt.Fprintln(out, strings.Join(append([]string{w.head()}, w.files...), "\n  "))
	}
	return err
}

// walks finds the files that run a statement between a save and its armed timer, and between the timer and the stored
// result. Background work is not in all of many walks, and so not in what they share.
func walks(ctx context.Context) (all []walked, err error) {
	folder, err := os.MkdirTemp("", "walk")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "walked")
	for _, command := range [][]string{
		{"go", "build", "-cover", "-covermode=atomic", "-coverpkg=" + module + "...", "-o", program,
			"./test/lab/walked"},
		{program, folder},
	} {
		run := exec.CommandContext(ctx, command[0], command[1:]...)
		run.Env = append(os.Environ(), "GOCOVERDIR="+folder)
		if said, err := run.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, said)
		}
	}
	for _, name := range []string{"save", "run"} {
		files, err := shared(ctx, filepath.Join(folder, name+".*"))
		if err != nil {
			return nil, err
		}
		all = append(all, walked{name, files})
	}
	return all, nil
}

// shared returns the files that ran a statement in each of the walks.
func shared(ctx context.Context, pattern string) (files []string, err error) {
	walks, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for _, walked := range walks {
		show := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+walked, "-o=/dev/stdout")
		text, err := show.Output()
		if err != nil {
			return nil, fmt.Errorf("read what ran in %s: %w", walked, err)
		}
		for _, file := range ran(string(text)) {
			times[file]++
		}
	}
	for file, n := range times {
		if n == len(walks) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files, nil
}

// ran reads a profile of coverage: lines of "file:from,to statements count".
func ran(profile string) (files []string) {
	for line := range strings.Lines(profile) {
		place, counts, _ := strings.Cut(strings.TrimSpace(line), " ")
		file, _, _ := strings.Cut(strings.TrimPrefix(place, module), ":")
		without := strings.HasPrefix(file, "test/") || !strings.HasSuffix(file, ".go") ||
			slices.ContainsFunc(uncounted, func(a string) bool { return strings.HasPrefix(file, a) })
		if !without && !strings.HasSuffix(counts, " 0") && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}
