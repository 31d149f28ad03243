package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	mutations = "test/lab/mutations"
	results   = "test/lab/results/mutations.md"
)

// candidates are the packages whose tests could notice a mutation, the quick ones first.
var candidates = []string{
	"internal/lifecycle/clock", "internal/lifecycle/batch", "internal/runqueue/timer",
	"internal/runqueue", "scanner", "internal/cluster",
	"internal/store/memstore", "internal/store/sqlstore", "internal/engine", "test/api",
	"internal/testkit/sim", "test/integration",
}

// mutate applies each mutation to a copy of the tree and runs the tests that should notice.
func mutate(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("only", "", "words, separated by commas: mutations whose names hold one of them")
	search := flags.Bool("search", false, "try all tests, package by package, until some notice")
	limit := flags.Duration("limit", 5*time.Minute, "how long one run of tests may take; a test that hangs has noticed")
	table := flags.Bool("table", false, "write the result to "+results)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *table && *only != "" {
		return errors.New("-table is about all mutations: leave out -only")
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
	b := &bench{root: root, limit: *limit, search: *search}
	if err := copyTree(ctx, b.tree()); err != nil {
		return err
	}
	begin := time.Now()
	outcomes, err := b.tryAll(ctx, all, out)
	if err != nil {
		return err
	}
	survived := len(slices.DeleteFunc(slices.Clone(outcomes), outcome.killed))
	took := time.Since(begin).Round(time.Second)
	end := fmt.Sprintf("%d of %d mutations killed, in %s", len(all)-survived, len(all), took)
	_, _ = fmt.Fprintln(out, end)
	if *table {
		if err := os.WriteFile(results, markdown(outcomes, end), 0o644); err != nil {
			return err
		}
	}
	if survived > 0 {
		return fmt.Errorf("%w: %d of %d", errSurvived, survived, len(all))
	}
	return nil
}

// copyTree copies the files of the tree that git does not ignore, with their changes.
func copyTree(ctx context.Context, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	script := `git ls-files -z --cached --others --exclude-standard |
		tar --null --create --files-from - | tar --extract --directory "$0"`
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", script, to)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the tree: %w: %s", err, said)
	}
	return nil
}

// tryAll tries one mutation after the other. Each named test has to pass without them first.
func (b *bench) tryAll(ctx context.Context, all []mutation, out io.Writer) (outcomes []outcome, err error) {
	sources, err := readSources(b.tree())
	if err != nil {
		return nil, err
	}
	breaks := make([]mutated, len(all))
	for i := range all {
		if breaks[i], err = all[i].fit(sources); err != nil {
			return nil, err
		}
	}
	if err := b.passes(ctx, all); err != nil {
		return nil, err
	}
	var refused error
	for i, m := range all {
		o, err := b.try(ctx, m, breaks[i])
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		_, _ = fmt.Fprintf(out, "%-44s %s (%ds)\n", m.name, o.tests(), int(o.took.Seconds()))
		outcomes = append(outcomes, o)
	}
	return outcomes, refused
}

// passes returns an error when a test that is named by a mutation fails without it.
func (b *bench) passes(ctx context.Context, all []mutation) error {
	if b.search {
		return nil
	}
	patterns := map[string][]string{}
	for _, m := range all {
		for _, k := range m.killers {
			patterns[k.folder] = append(patterns[k.folder], k.run)
		}
	}
	for folder, runs := range patterns {
		slices.Sort(runs)
		failed, _, err := b.test(ctx, killer{run: strings.Join(slices.Compact(runs), "|"), folder: folder})
		if err != nil || len(failed) > 0 {
			return fmt.Errorf("tests of %s fail without a mutation: %v %w", folder, failed, err)
		}
	}
	return nil
}

// try applies a mutation to the copy, runs the tests that should notice, and undoes it.
func (b *bench) try(ctx context.Context, m mutation, s mutated) (o outcome, err error) {
	o.mutation = m
	begin := time.Now()
	if err := write(s.path, s.by); err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, write(s.path, s.lines)) }()
	b.built = nil
	killers := m.killers
	if b.search {
		killers = b.candidatesOf(s.path)
	}
	for _, k := range killers {
		failed, none, err := b.test(ctx, k)
		if err != nil {
			return o, err
		}
		if none && !b.search {
			o.gone = append(o.gone, "no test is "+k.run)
		}
		o.by = append(o.by, failed...)
		if b.search && len(failed) > 0 {
			break
		}
	}
	o.took = time.Since(begin)
	return o, nil
}

// candidatesOf returns all tests that could notice a change of the file, its own package's first.
func (b *bench) candidatesOf(path string) (killers []killer) {
	own, _ := filepath.Rel(b.tree(), filepath.Dir(path))
	for _, folder := range slices.Concat([]string{own}, candidates) {
		if !slices.ContainsFunc(killers, func(k killer) bool { return k.folder == folder }) {
			killers = append(killers, killer{run: ".", folder: folder})
		}
	}
	return killers
}

// outcome is what became of a mutation.
type outcome struct {
	mutation
	by   []string // the tests that noticed
	gone []string // named tests that are not there
	took time.Duration
}

func (o outcome) killed() bool { return len(o.by) > 0 }

func (o outcome) tests() string {
	by := slices.Concat(o.by, o.gone)
	if !o.killed() {
		by = append(by, "**nothing**")
	}
	return strings.Join(by, ", ")
}

// markdown is the table of results.
func markdown(outcomes []outcome, end string) []byte {
	var text strings.Builder
	text.WriteString("# Mutations\n\nWritten by `go run ./test/lab mutate -table`: each line breaks the code in one " +
		"way, and names the tests that\nnotice.\n\n")
	text.WriteString("| mutation | what it breaks | killed by | seconds |\n|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&text, "| %s | %s | %s | %.0f |\n", o.name, o.breaks, o.tests(), o.took.Seconds())
	}
	text.WriteString("\n" + end + ".\n")
	return []byte(text.String())
}
