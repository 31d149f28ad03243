//go:build !race

package documents

import (
	"errors"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/patch"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// A commit of the walk stands on the ones before it. The packages that it changes compile, and the tests that it adds
// pass.
func TestEachCommitOfTheWalkPasses(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join(root, "docs/walk.md"))
	files := map[string]string{} // as the commits so far have left them
	for _, commit := range strings.Split(page, "\n## ")[1:] {
		subject, _, _ := strings.Cut(commit, "\n")
		var changed, tested []string
		for _, b := range (document{text: commit}).blocks() {
			for _, path := range b.commit(t, subject, files) {
				folder := "./" + filepath.Dir(path)
				changed = append(changed, folder)
				if strings.HasSuffix(path, "_test.go") {
					tested = append(tested, folder)
				}
			}
		}
		overlay, err := patch.Overlay(t.TempDir(), files)
		servertest.OK(t, err)
		// This compiles, and links nothing.
		runGo(t, subject, append([]string{"list", "-export", "-overlay", overlay}, changed...))
		if len(tested) > 0 {
			runGo(t, subject, append([]string{"test", "-vet=off", "-run", "Note", "-overlay", overlay}, tested...))
		}
	}
}

// commit changes the files as the block says, and returns their paths. A line +++ begins a file, and @@ a further place
// in it. A file that is not there is new.
func (b block) commit(t *testing.T, subject string, files map[string]string) (paths []string) {
	t.Helper()
	for _, part := range strings.Split("\n"+b.text, "\n+++ ")[1:] {
		path, changes, _ := strings.Cut(part, "\n")
		name := filepath.Join(root, path)
		text, known := files[name]
		if !known {
			there, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			text = string(there)
		}
		for place := range strings.SplitSeq(changes, "@@\n") {
			text = patched(t, subject+", "+path, text, place)
		}
		formatted, err := format.Source([]byte(text))
		if err != nil || string(formatted) != text {
			t.Errorf("%s: %s is not formatted: %v", subject, path, err)
		}
		files[name] = text
		paths = append(paths, path)
	}
	return paths
}

// patched returns the text with a change, which is the whole text of a new file.
func patched(t *testing.T, where, text, change string) string {
	t.Helper()
	var p patch.Patch
	for line := range strings.SplitSeq(strings.TrimSuffix(change, "\n"), "\n") {
		if !p.Add(line) {
			t.Fatalf("%s: no line of a patch: %q", where, line)
		}
	}
	if text == "" {
		return p.Text()
	}
	after, fits := p.Apply(strings.Split(text, "\n"))
	if fits != 1 {
		t.Fatalf("%s fits %d times, want once:\n%s", where, fits, change)
	}
	return strings.Join(after, "\n")
}

func runGo(t *testing.T, subject string, args []string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: go %s: %v\n%s", subject, strings.Join(args, " "), err, out)
	}
}
