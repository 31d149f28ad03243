package main

import (
	"os"

	"github.com/delaytask/delaytask/test/chaos/ledger"
)

// The files are found from the root of the repository, where the program is run.
const (
	recordFile   = "docs/reliability.jsonl"
	documentFile = "docs/reliability.md"
)

// writeReport makes the tables of the document from the record.
func writeReport() error {
	lines, err := ledger.ReadFile(recordFile)
	if err != nil {
		return err
	}
	document, err := os.ReadFile(documentFile)
	if err != nil {
		return err
	}
	filled, err := ledger.Fill(string(document), lines)
	if err != nil {
		return err
	}
	return os.WriteFile(documentFile, []byte(filled), 0o644)
}
