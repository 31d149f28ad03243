package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/internal/testkit/linear"
)

var errBroken = errors.New("a promise was broken")

// judgeAgain shows what is wrong with journals, and then what they tell in all.
func judgeAgain(files []string, out io.Writer) error {
	events, err := journal.ReadFiles(files...)
	if err != nil {
		return err
	}
	rules, err := judge.RulesOf(events)
	if err != nil {
		return err
	}
	v := judge.Judge(events, rules)
	counts, err := json.Marshal(struct {
		judge.Counts
		Linear linear.Counts `json:"linear"`
	}{v.Counts, v.Linear})
	if err := errors.Join(err, v.Show(out, math.MaxInt)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d events, %d violations: %s\n", len(events), v.Broken(), counts); err != nil {
		return err
	}
	if v.Broken() > 0 {
		return fmt.Errorf("%w %d times", errBroken, v.Broken())
	}
	return nil
}
