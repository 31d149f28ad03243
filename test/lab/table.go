package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
