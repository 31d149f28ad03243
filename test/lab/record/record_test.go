package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocumentsShowTheLines(t *testing.T) {
	t.Parallel()
	const begin, end = "before\n<!-- runs: made by make -->\n", "<!-- runs: end -->\nafter\n"
	root := tree(t, map[string]string{"shown.md": begin + end})
	r := Record[int]{File: "runs.jsonl", What: "runs", Command: "make", Documents: map[string]func([]int) string{
		"shown.md": func(lines []int) string { return fmt.Sprintln(lines) },
	}}
	if err := r.Check(root); err == nil || !strings.Contains(err.Error(), "shown.md differs") {
		t.Errorf("a document without its tables: %v", err)
	}
	for _, l := range []int{7, 8} {
		if err := r.Append(root, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Check(root); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "shown.md"))
	if want := begin + "\n[7 8]\n\n" + end; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	if err := os.WriteFile(filepath.Join(root, r.File), []byte("7\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Report(root); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("garbage: %v", err)
	}
	if err := r.Append(tree(t, map[string]string{"shown.md": "no marks"}), 7); err == nil || !strings.Contains(err.Error(), "shown.md") {
		t.Errorf("a document without a place: %v", err)
	}
}
