package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExamplesAreShort(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(lines) >= 60 {
			t.Errorf("%s has %d lines, want less than 60", file, len(lines))
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > 128 {
				t.Errorf("%s has a line of %d characters", file, n)
			}
		}
	}
}
