package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

type verdict string

const (
	kept   verdict = "kept"   // the promise
	broken verdict = "BROKEN" // the promise; the program exits with 1
	met    verdict = "met"    // an aim
	missed verdict = "missed" // an aim, which a busy machine is enough for
	noted  verdict = ""       // a figure without a bound
)

// result is one line of a report.
type result struct {
	Proof   string  `json:"proof"`
	What    string  `json:"what"`
	Figure  string  `json:"figure"`
	Bound   string  `json:"bound,omitempty"`
	Verdict verdict `json:"verdict,omitempty"`
}

// report is what was shown on one database.
type report struct {
	Database string   `json:"database"`
	Server   string   `json:"server"`
	Results  []result `json:"results"`
}

func (r *report) kept() bool {
	for _, line := range r.Results {
		if line.Verdict == broken {
			return false
		}
	}
	return true
}

// write shows the report as a table. Errors of the writer come out of Flush.
func (r *report) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "\n%s\nPROOF\tWHAT\tFIGURE\tBOUND\tVERDICT\n", r.Server)
	for _, line := range r.Results {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line.Proof, line.What, line.Figure, line.Bound, line.Verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, reports []report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(reports); err != nil {
		return fmt.Errorf("write the reports: %w", err)
	}
	return nil
}
