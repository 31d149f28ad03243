package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestTheBuildContextHasWhatTheImageNeedsAndNoSecrets(t *testing.T) {
	file, err := os.Open(root + "/.dockerignore")
	servertest.OK(t, err)
	defer func() { servertest.OK(t, file.Close()) }()
	lines, err := ignorefile.ReadAll(file)
	servertest.OK(t, err)
	ignored, err := patternmatcher.New(lines)
	servertest.OK(t, err)
	f := func(path string, want bool) {
		t.Helper()
		got, err := ignored.MatchesOrParentMatches(path)
		servertest.OK(t, err)
		if got != want {
			t.Errorf("%s: left out %v, want %v", path, got, want)
		}
	}
	top, err := filepath.Abs(root)
	servertest.OK(t, err)
	const files = `{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}
{{end}}{{end}}`
	list := exec.Command("go", "list", "-deps", "-f", files, "./cmd/delaytask")
	list.Dir = root
	out, err := list.Output()
	servertest.OK(t, err)
	needed := []string{"go.mod", "go.sum"}
	for path := range strings.FieldsSeq(string(out)) {
		if rest, own := strings.CutPrefix(path, top+"/"); own {
			needed = append(needed, rest)
		}
	}
	if len(needed) < 100 {
		t.Fatalf("go list names %d files", len(needed))
	}
	for _, path := range needed {
		f(path, false)
	}
	for _, path := range []string{
		".git/config", "config.yaml", ".env", "cmd/.env", "cmd/delaytask/.env.local", "delaytask.db",
		"cmd/delaytask/delaytask.db-wal", "tls.key", "internal/server/cert.pem", "deploy/kubernetes/secret.yaml",
		"bin/delaytask", "scheduler/scheduler_test.go",
	} {
		f(path, true)
	}
}
