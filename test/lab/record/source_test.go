package record

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

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
			"a/a.go": "// Package a.\npackage a\n\nimport \"fmt\"\n\nfunc F() {\n\n\t// two\n\tfmt.Println(1)\n}\n\nvar x = 1\n",
		}, true},
		{"a declaration in another file", map[string]string{
			"a/a.go": "package a\n\nvar x = 1\n", "a/f.go": "package a\n\nimport \"fmt\"\n\nfunc F() {\n\tfmt.Println(1)\n}\n",
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
