package record

import (
	"fmt"
	"maps"
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
	err = r.Append(tree(t, map[string]string{"shown.md": "no marks"}), 7)
	if err == nil || !strings.Contains(err.Error(), "shown.md") {
		t.Errorf("a document without a place: %v", err)
	}
}

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyWhatDecidesChangesTheHash(t *testing.T) {
	t.Parallel()
	const before = "package a\n\nimport \"fmt\"\n\n// F prints.\nfunc F() {\n\tfmt.Println(1) // one\n}\n\nvar x = 1\n"
	base := map[string]string{"a/a.go": before, "b/b.go": "package b\n\nconst c = 2\n"}
	hash := func(files map[string]string) string {
		t.Helper()
		code, err := Code(tree(t, files), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	want := hash(base)
	for _, tt := range []struct {
		name  string
		files map[string]string
		same  bool
	}{
		{"comments and layout", map[string]string{
			"a/a.go": "// Package a.\npackage a\n\nimport \"fmt\"\n\n" +
				"func F() {\n\n\t// two\n\tfmt.Println(1)\n}\n\nvar x = 1\n",
		}, true},
		{"a declaration in another file", map[string]string{
			"a/a.go": "package a\n\nvar x = 1\n",
			"a/f.go": "package a\n\nimport \"fmt\"\n\nfunc F() {\n\tfmt.Println(1)\n}\n",
		}, true},
		{"a test", map[string]string{"a/a_test.go": "package a\n\nvar y = 1\n"}, true},
		{"another folder", map[string]string{"c/c.go": "package c\n\nvar y = 1\n"}, true},
		{"a literal", map[string]string{"b/b.go": "package b\n\nconst c = 3\n"}, false},
		{"a new declaration", map[string]string{"a/y.go": "package a\n\nvar y = 1\n"}, false},
		{"a directive", map[string]string{"b/b.go": "package b\n\n//go:generate x\nconst c = 2\n"}, false},
		{"a build constraint", map[string]string{"b/b.go": "//go:build linux\n\npackage b\n\nconst c = 2\n"}, false},
		{"an import", map[string]string{"b/b.go": "package b\n\nimport _ \"embed\"\n\nconst c = 2\n"}, false},
	} {
		files := maps.Clone(base)
		maps.Copy(files, tt.files)
		if same := hash(files) == want; same != tt.same {
			t.Errorf("%s: the same is %v, want %v", tt.name, same, tt.same)
		}
	}
}

func TestFoldersWithoutCodeAreRefused(t *testing.T) {
	t.Parallel()
	if code, err := Code(t.TempDir(), []string{"gone"}); err == nil {
		t.Errorf("got %q", code)
	}
}

func TestTheSourceNamesTheCommitAndWhatItChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	root := "."
	of := Record[int]{File: "record.jsonl", Documents: map[string]func([]int) string{"shown.md": nil}}
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	now := func() Source {
		t.Helper()
		s, err := of.Source(t.Context(), root, []string{"engine", "clock"})
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
	write(t, "engine/a.go", "package engine\n\nvar a = 1\n")
	write(t, "engine/a_test.go", "package engine\n")
	write(t, "clock/a.go", "package clock\n\nvar a = 1\n")
	write(t, "other/a.go", "package other\n")
	first := commit()
	// A program in a folder of its own finds the same source.
	t.Chdir("other")
	var err error
	if root, err = Root(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now() != first {
		t.Errorf("got %+v from a folder, want %+v", now(), first)
	}
	t.Chdir(root)
	if first.Changed || first.Code == "" || first.Commit == "" {
		t.Errorf("got %+v", first)
	}
	write(t, "record.jsonl", "{}")
	write(t, "shown.md", "")
	if now().Changed {
		t.Error("the record itself counts as a change")
	}
	write(t, "engine/a_test.go", "package engine\n\nvar b = 2\n")
	write(t, "other/a.go", "package other\n\nvar b = 2\n")
	if s := now(); !s.Changed || s.Code != first.Code {
		t.Errorf("got %+v after %+v", s, first)
	}
	if s := commit(); s.Changed || s.Code != first.Code || s.Commit == first.Commit {
		t.Errorf("a test and another folder changed: got %+v after %+v", s, first)
	}
}
