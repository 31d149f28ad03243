// Package record keeps what runs have shown: a line of JSON for each, with the code that was run. From these lines it
// makes the tables of documents.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Record is a file of lines and the documents that show them. The paths are relative to the root of the repository.
type Record[Line any] struct {
	File      string
	What      string // it shows, in the marks of the documents
	Command   string // makes the tables
	Documents map[string]func([]Line) string
}

// Append adds a line to the file, which is made if need be, and brings the documents up to date.
func (r Record[Line]) Append(root string, l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(root, r.File), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	return r.Report(root)
}

// Lines returns the lines of the file, none when there is no file.
func (r Record[Line]) Lines(root string) (lines []Line, err error) {
	text, err := os.ReadFile(filepath.Join(root, r.File))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for one := range bytes.Lines(text) {
		var l Line
		if err := json.Unmarshal(one, &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", r.File, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// Report makes the tables of the documents from the lines.
func (r Record[Line]) Report(root string) error {
	return r.each(root, func(path, want string) error { return os.WriteFile(path, []byte(want), 0o644) })
}

// Check returns an error when a document shows something else than the lines.
func (r Record[Line]) Check(root string) error {
	return r.each(root, func(path, _ string) error {
		return fmt.Errorf("%s differs from the record: %s", path, r.Command)
	})
}

// each calls do with each document that differs from what the lines want.
func (r Record[Line]) each(root string, do func(path, want string) error) error {
	lines, err := r.Lines(root)
	if err != nil {
		return err
	}
	for file, tables := range r.Documents {
		path := filepath.Join(root, file)
		is, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := r.fill(string(is), tables(lines))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if want == string(is) {
			continue
		}
		if err := do(path, want); err != nil {
			return err
		}
	}
	return nil
}

// fill puts tables between the two marks of a document.
func (r Record[Line]) fill(document, tables string) (string, error) {
	begin, end := fmt.Sprintf("<!-- %s: made by %s -->\n", r.What, r.Command), fmt.Sprintf("<!-- %s: end -->\n", r.What)
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there is no place for the tables: want %q and %q", begin, end)
	}
	return before + begin + "\n" + tables + "\n" + end + after, nil
}

// UpperBound is the rule of three: when none of n things has failed, at most 3/n fail, with 95 % certainty. It is empty
// where one has.
func UpperBound(failed, n int, what string) string {
	if failed > 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1g of a %s", 3/float64(n), what)
}
