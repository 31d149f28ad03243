// Command peers measures delaytask beside other task systems, each on its own server on this machine, in turns in one
// run. It starts the servers that it finds installed, and says what it leaves out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle/child"
)

type options struct {
	quick  bool
	turns  int
	only   string
	dir    string
	record string
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "shorter measurements, to see that all works; the figures say little")
	flag.IntVar(&o.turns, "turns", 3, "turns of all measurements; figures are medians")
	flag.StringVar(&o.only, "only", "", "measurements and systems whose names contain one of these words, by comma")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the servers have their data: a folder on the disk that counts")
	flag.StringVar(&o.record, "record", "", "file to write the report to")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := do(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, o options) error {
	if flag.Arg(0) == workerArgument {
		return child.Serve(ctx, os.Stdin, os.Stdout, workUntilKilled)
	}
	if o.turns < 1 {
		return fmt.Errorf("-turns is %d, want 1 or more", o.turns)
	}
	dir, err := os.MkdirTemp(o.dir, "delaytask-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's user goes through it
		return err
	}
	rep := newReport(o)
	for turn := range o.turns {
		for i, s := range systems {
			if !o.wants(s.name, systemNames()) {
				continue
			}
			place := filepath.Join(dir, fmt.Sprintf("%d-%d", turn, i))
			if err := rep.measure(ctx, s, place); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	text := rep.String()
	fmt.Print("\n" + text)
	if o.record == "" {
		return nil
	}
	return os.WriteFile(o.record, []byte(text), 0o644)
}

// measure starts the server of a system and takes all measurements on it.
func (r *report) measure(ctx context.Context, s system, dir string) error {
	if _, left := r.left[s.name]; left {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	server, err := s.start(ctx, dir)
	if m, ok := errors.AsType[missing](err); ok {
		r.left[s.name] = string(m)
		fmt.Printf("%s is left out: %s\n", s.name, m)
		return nil
	}
	if server != nil && server.stop != nil {
		defer server.stop()
	}
	if err != nil {
		return err
	}
	r.versions[s.name] = server.version
	for _, m := range measurements {
		if !r.options.wants(m.name, measurementNames()) {
			continue
		}
		run := &run{
			system: s, dsn: server.dsn,
			length: 4 * time.Second, lead: 10 * time.Second, backlog: 20000, patience: 2 * time.Minute,
		}
		if r.options.quick {
			run.length, run.lead, run.backlog, run.patience = time.Second, 3*time.Second, 2000, 10*time.Second
		}
		begun := time.Now()
		found, err := run.measured(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.add(s.name, found)
		fmt.Printf("%-28s %-10s %5.1f s  %s\n", s.name, m.name, time.Since(begun).Seconds(), found)
	}
	return nil
}

// measured takes a measurement on a queue of its own.
func (r *run) measured(ctx context.Context, m measurement) (figures, error) {
	q, err := r.system.open(ctx, r.dsn)
	if err != nil {
		return nil, err
	}
	defer q.close()
	if err := q.clear(ctx); err != nil {
		return nil, err
	}
	return m.take(ctx, r, q)
}

// wants reports whether -only names it. A word that is no part of any of all says nothing about it.
func (o options) wants(name string, all []string) bool {
	wanted, about := false, false
	for word := range strings.SplitSeq(o.only, ",") {
		if word == "" {
			continue
		}
		for _, other := range all {
			if strings.Contains(strings.ToLower(other), strings.ToLower(word)) {
				about = true
				wanted = wanted || other == name
			}
		}
	}
	return wanted || !about
}

func systemNames() (names []string) {
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}

func measurementNames() (names []string) {
	for _, m := range measurements {
		names = append(names, m.name)
	}
	return names
}
