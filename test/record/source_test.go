package record

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheSourceNamesTheCommitAndWhatItChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	of := Record[int]{File: "record.jsonl", Documents: map[string]func([]int) string{"shown.md": nil}}
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := func() Source {
		t.Helper()
		s, err := of.Source(t.Context(), []string{"engine", "clock"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	commit := func() Source {
		t.Helper()
		run("add", ".")
		run("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "step")
		return now()
	}
	run("init", "-q")
	write("engine/a.go", "package engine\n\nvar a = 1\n")
	write("engine/a_test.go", "package engine\n")
	write("clock/a.go", "package clock\n\nvar a = 1\n")
	write("other/a.go", "package other\n")
	first := commit()
	if first.Changed || first.Code == "" || first.Commit == "" {
		t.Errorf("got %+v", first)
	}
	write("record.jsonl", "{}")
	write("shown.md", "")
	if now().Changed {
		t.Error("the record itself counts as a change")
	}
	write("engine/a_test.go", "package engine\n\nvar b = 2\n")
	write("other/a.go", "package other\n\nvar b = 2\n")
	if s := now(); !s.Changed || s.Code != first.Code {
		t.Errorf("got %+v after %+v", s, first)
	}
	if s := commit(); s.Changed || s.Code != first.Code || s.Commit == first.Commit {
		t.Errorf("a test and another folder changed: got %+v after %+v", s, first)
	}
}
