package dbtest

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package, stops the servers that were started for them, and prints which servers were used.
// A package that tests on databases calls it from TestMain.
func Main(m *testing.M) { os.Exit(WithServers(m).Run()) }

// WithServers is [Main] for a TestMain that wraps the run itself, as a check for leaked goroutines does.
func WithServers(m *testing.M) Runner { return Runner{m} }

// Runner runs tests and then ends the servers.
type Runner struct{ m *testing.M }

// Run returns the exit code of the tests, or 1 when a server could not be ended or reported.
func (r Runner) Run() int {
	code := r.m.Run()
	if err := finish(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		code = max(code, 1)
	}
	return code
}

// finish drops the databases that were lent, stops the private servers and reports all servers that were used.
func finish() error {
	var errs []error
	for _, drop := range lentOut {
		errs = append(errs, drop())
	}
	for _, s := range state.servers {
		fmt.Println("tested on", s)
		if s.stop != nil {
			errs = append(errs, s.stop())
		}
	}
	return errors.Join(append(errs, report(state.servers))...)
}

// report appends one line for each server. A line is short enough for packages to append at the same time.
func report(servers []*server) error {
	path := os.Getenv("DELAYTASK_TEST_REPORT")
	if path == "" || len(servers) == 0 {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if _, err := fmt.Fprintf(file, "tested on %s\n", s); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}
