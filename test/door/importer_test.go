package door

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The modules of an application that imports the library, and of its tests.
const (
	mostArchives = 45 // that go mod tidy downloads
	mostLinked   = 16
)

// What only this repository's tests need must not be where an application's go mod tidy looks: at the tests of the
// packages that it imports.
func TestAnApplicationTakesInFewModules(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/delaytask/delaytask"
	dir := t.TempDir()
	replaced := "require " + module + " v0.0.0\n\nreplace " + module + " => " + root
	imports := "\n\nimport (\n\t_ \"" + module + "\"\n\t_ \"" + module + "/processor\"\n" +
		"\t_ \"" + module + "/scheduler\"\n)\n"
	for name, text := range map[string]string{
		"go.mod":       "module example.com/shop\n\ngo 1.26\n\n" + replaced,
		"main.go":      "package main" + imports + "\nfunc main() {}\n",
		"main_test.go": "package main\n\nimport _ \"" + module + "/delaytasktest\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("mod", "tidy")
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	var archives []string
	for line := range strings.Lines(string(sums)) {
		if !strings.Contains(line, "/go.mod h1:") {
			archives = append(archives, strings.TrimSpace(line))
		}
	}
	for _, part := range []string{"docker", "containerd", "moby"} {
		if strings.Contains(string(sums), part) {
			t.Errorf("go.sum names %s", part)
		}
	}
	if n := len(archives) + 1; n > mostArchives { // and ours, which is replaced here
		t.Errorf("%d archives, want at most %d:\n%s", n, mostArchives, strings.Join(archives, "\n"))
	}
	linked := map[string]bool{}
	for name := range strings.Lines(run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")) {
		if name = strings.TrimSpace(name); name != "" {
			linked[name] = true
		}
	}
	if len(linked)-1 > mostLinked {
		t.Errorf("%d modules are linked, want at most %d: %v", len(linked)-1, mostLinked, linked)
	}
}
