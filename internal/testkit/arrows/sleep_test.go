package arrows

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoTestSleeps lets time pass only where it costs nothing, in a bubble of testing/synctest, and in benchmarks,
// where a sleep plays a slow database. The helper that opens the bubble may be in another file of the package.
func TestNoTestSleeps(t *testing.T) {
	files := sources(t)
	bubbles := map[string]bool{"internal/testkit/arrows": true} // this file names what it looks for
	for file, imports := range files {
		if strings.HasSuffix(file, "_test.go") && slices.Contains(imports, "testing/synctest") {
			bubbles[path.Dir(file)] = true
		}
	}
	for file := range files {
		if !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "bench_test.go") || bubbles[path.Dir(file)] {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("time.Sleep(")) {
			t.Errorf("%s sleeps outside a synctest bubble: wait for a signal instead", file)
		}
	}
}
