// Command judge says from journals alone whether the promises held: those of a run of the simulation that broke one, or those of
// the processes of a run under real faults.
//
//	go run ./test/judge FILE…
//
// It prints each violation with the events that show it, then each task whose history is not linearizable, and then what the journals
// show in all. The exit code is 1 when a promise was
// broken and 2 when the journals cannot be read.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/internal/judge"
	"github.com/delaytask/delaytask/internal/linear"
)

func main() {
	broken, err := run(os.Stdout, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case broken:
		os.Exit(1)
	}
}

func run(out io.Writer, files []string) (broken bool, err error) {
	if len(files) == 0 {
		return false, fmt.Errorf("name the files of the journals: go run ./test/judge FILE…")
	}
	events, err := journal.ReadFiles(files...)
	if err != nil {
		return false, err
	}
	rules, err := judge.RulesOf(events)
	if err != nil {
		return false, err
	}
	verdict := judge.Judge(events, rules)
	var text bytes.Buffer
	for _, v := range verdict.Violations {
		if err := show(&text, v, v.Events); err != nil {
			return false, err
		}
	}
	unexplained, told := linear.Check(events, rules.Behind)
	for _, v := range unexplained {
		if err := show(&text, v, v.Events); err != nil {
			return false, err
		}
	}
	counts, err := json.Marshal(struct {
		judge.Counts
		Linear linear.Counts `json:"linear"`
	}{verdict.Counts, told})
	if err != nil {
		return false, err
	}
	violations := len(verdict.Violations) + len(unexplained)
	fmt.Fprintf(&text, "%d events, %d violations: %s\n", len(events), violations, counts)
	_, err = text.WriteTo(out)
	return violations > 0, err
}

func show(text *bytes.Buffer, violation fmt.Stringer, events []journal.Event) error {
	fmt.Fprintln(text, violation)
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "    %s\n", line)
	}
	return nil
}
