package golden

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsWrittenAndThenHeld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "said.txt")
	t.Setenv("DELAYTASK_UPDATE", "1")
	Check(t, file, "a\nb\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "a\nb\n" {
		t.Fatalf("the file holds %q, %v", text, err)
	}
	t.Setenv("DELAYTASK_UPDATE", "")
	Check(t, file, "a\nb\n")
}
