package ledger

import (
	"context"
	"slices"

	"github.com/delaytask/delaytask/test/record"
)

// judged are the folders whose change makes older runs worth nothing: the engine with what it is made of, and the store.
var judged = append(slices.Clone(record.Seeds), "internal/store")

// SourceNow is what is run now, and recorded in these files.
func SourceNow(ctx context.Context, files ...string) (record.Source, error) {
	return record.SourceNow(ctx, judged, files...)
}

// Append adds a line to the file, which is made if need be.
func Append(path string, l Line) error { return record.Append(path, l) }

// ReadFile returns the lines of the file, none when there is no file.
func ReadFile(path string) ([]Line, error) { return record.ReadFile[Line](path) }

// Fill puts the tables between the two marks of the document.
func Fill(document string, lines []Line) (string, error) {
	return record.Fill(document, "chaos", "go run ./test/chaos report", Tables(lines))
}
