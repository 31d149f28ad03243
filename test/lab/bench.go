package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bench is a copy of the tree that mutations are applied to, and the test programs that are built of it.
type bench struct {
	root   string
	limit  time.Duration
	search bool
	built  map[string]string // test programs by folder, as far as they are of the code as it is now
}

func (b *bench) tree() string { return filepath.Join(b.root, "tree") }

// build compiles the tests of a package. A mutation that does not compile says nothing about them.
func (b *bench) build(ctx context.Context, folder string) (program string, err error) {
	if program, ok := b.built[folder]; ok {
		return program, nil
	}
	program = filepath.Join(b.root, strings.ReplaceAll(folder, "/", "-")+".test")
	// Without debug information linking takes half as long.
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, "./"+folder)
	command.Dir = b.tree()
	if said, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %w: %s", err, said)
	}
	if b.built == nil {
		b.built = map[string]string{}
	}
	b.built[folder] = program
	return program, nil
}

var (
	failure  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	hanging  = regexp.MustCompile(`(?m)^\t\t(Test\w+) \(`)
	panicked = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)`)
)

// test runs tests in the copy and returns those that failed. It reports whether there were none to run.
func (b *bench) test(ctx context.Context, k killer) (failed []string, none bool, err error) {
	program, err := b.build(ctx, k.folder)
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.limit+10*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, program, "-test.run="+k.run, "-test.timeout="+b.limit.String())
	command.Dir = filepath.Join(b.tree(), k.folder)
	command.Env = append(os.Environ(), "PWD="+command.Dir)
	command.WaitDelay = 10 * time.Second
	said, err := command.CombinedOutput()
	if err == nil {
		return nil, strings.Contains(string(said), "no tests to run"), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() < 0 && ctx.Err() == nil {
		return nil, false, fmt.Errorf("tests of %s: %w: %s", k.folder, err, said)
	}
	for _, notice := range k.says {
		if !strings.Contains(string(said), notice) {
			return nil, false, fmt.Errorf("%w: %s does not say %q: %s", errSurvived, k.run, notice, said)
		}
	}
	return failures(string(said), k.run), false, nil
}

// failures names the tests that failed. A panic outside of a test's own goroutine does not say which that was.
func failures(said, pattern string) (names []string) {
	plain := strings.ReplaceAll(strings.Trim(pattern, "^$"), "$/^", "/")
	for _, match := range failure.FindAllStringSubmatch(said, -1) {
		if strings.HasPrefix(plain, match[1]+"/") {
			match[1] = plain // only this part of the test was run
		}
		names = append(names, match[1])
	}
	switch {
	case strings.Contains(said, "panic: test timed out"):
		for _, match := range hanging.FindAllStringSubmatch(said, -1) {
			names = append(names, match[1]+" (hangs until the time limit)")
		}
	case len(names) == 0:
		reason := "ends with an error"
		if match := panicked.FindStringSubmatch(said); match != nil {
			reason = "panics: " + match[1]
		}
		names = append(names, plain+" ("+reason+")")
	}
	slices.Sort(names)
	return slices.Compact(names)
}
