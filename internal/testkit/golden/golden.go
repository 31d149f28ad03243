// Package golden holds what a program says against a file, so that a change of it is seen and decided.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Check fails the test unless the file holds got, and shows the first line that differs. With DELAYTASK_UPDATE=1 it
// writes the file instead.
func Check(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("DELAYTASK_UPDATE") == "1" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	held, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: DELAYTASK_UPDATE=1 writes the file", err)
	}
	want, have := strings.Split(string(held), "\n"), strings.Split(got, "\n")
	for i := range max(len(want), len(have)) {
		if w, h := line(want, i), line(have, i); w != h {
			t.Fatalf("%s differs in line %d: DELAYTASK_UPDATE=1 writes it anew\n got: %.500s\nwant: %.500s",
				file, i+1, h, w)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
