package record

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Source is what was run.
type Source struct {
	Commit  string
	Changed bool   // the tree has changes that are not in the commit
	Code    string // the hash of the declarations that decide, see [Code]
}

// Seeds is the folders whose code decides how a simulated cluster behaves.
var Seeds = []string{
	"internal/lifecycle/batch", "internal/lifecycle/clock", "internal/cluster", "internal/engine",
	"internal/engine/arm",
	"internal/engine/control", "internal/engine/events", "internal/engine/find", "internal/engine/lease",
	"internal/engine/run", "internal/engine/table", "internal/lifecycle",
	"internal/store/memstore", "internal/schedules/plan", "internal/row", "internal/runqueue",
	"internal/save", "internal/schedules/decide",
	"internal/schedules/spec", "internal/store", "internal/runqueue/timer", "processor", "scanner",
}

// Root returns the root of the repository that the working directory is in.
func Root(ctx context.Context) (string, error) { return git(ctx, "rev-parse", "--show-toplevel") }

// Source asks git what is in the repository at root. Changes of the record and of its documents do not count.
func (r Record[Line]) Source(ctx context.Context, root string, folders []string) (s Source, err error) {
	if s.Commit, err = git(ctx, "-C", root, "rev-parse", "--short=12", "HEAD"); err != nil {
		return s, err
	}
	asked := []string{"-C", root, "status", "--porcelain", "--", ".", ":!" + r.File}
	for file := range r.Documents {
		asked = append(asked, ":!"+file)
	}
	status, err := git(ctx, asked...)
	if err != nil {
		return s, err
	}
	s.Changed = status != ""
	s.Code, err = Code(root, folders)
	return s, err
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("ask git for %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Code returns a hash of the top-level declarations of the Go files in the folders, tests left out. Comments, layout,
// order and the names of files do not count: a commit that moves or explains declarations leaves the hash alone.
// Directives and build constraints count, as do the imports from outside of the module.
func Code(root string, folders []string) (string, error) {
	var all, imports []string
	for _, folder := range folders {
		files, err := fs.Glob(os.DirFS(root), folder+"/*.go")
		if err != nil {
			return "", fmt.Errorf("list the files of %s: %w", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			found, imported, err := declarations(filepath.Join(root, file))
			if err != nil {
				return "", fmt.Errorf("read the declarations of %s: %w", file, err)
			}
			all, imports = append(all, found...), append(imports, imported...)
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("no declarations in %s below %s", strings.Join(folders, ", "), root)
	}
	slices.Sort(all)
	slices.Sort(imports)
	sum := sha256.New()
	for _, d := range append(all, slices.Compact(imports)...) {
		_, _ = fmt.Fprintf(sum, "%d %s\n", len(d), d)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// declarations returns the tokens of each declaration of a file, and what it imports from outside of the module.
func declarations(path string) (found, imports []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range file.Imports {
		if !strings.Contains(i.Path.Value, "/delaytask/delaytask") {
			imports = append(imports, "import "+i.Path.Value)
		}
	}
	built := constraint(path, file)
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		from, to := set.Position(start(d)).Offset, set.Position(d.End()).Offset
		tokens, err := tokens(text[from:to])
		if err != nil {
			return nil, nil, err
		}
		found = append(found, built+tokens)
	}
	return found, imports, nil
}

// start returns where a declaration begins, its comment included.
func start(d ast.Decl) token.Pos {
	var doc *ast.CommentGroup
	switch d := d.(type) {
	case *ast.FuncDecl:
		doc = d.Doc
	case *ast.GenDecl:
		doc = d.Doc
	}
	if doc != nil {
		return doc.Pos()
	}
	return d.Pos()
}

// tokens returns the tokens of a source text with a space between them. Of its comments it keeps directives.
func tokens(text []byte) (string, error) {
	set := token.NewFileSet()
	var failed error
	var s scanner.Scanner
	s.Init(set.AddFile("", -1, len(text)), text, func(_ token.Position, msg string) {
		failed = cmp.Or(failed, errors.New(msg))
	}, scanner.ScanComments)
	var b strings.Builder
	for {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return b.String(), failed
		case tok == token.SEMICOLON:
			b.WriteString("; ") // whether it was written or is the end of a line
		case tok != token.COMMENT || strings.HasPrefix(literal, "//go:"):
			b.WriteString(cmp.Or(literal, tok.String()) + " ")
		}
	}
}

// constraint returns what a file says of where it is built, by its name and by its first lines.
func constraint(path string, file *ast.File) string {
	said := ""
	if strings.HasSuffix(path, "_linux.go") {
		said = "linux "
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() < file.Package && strings.HasPrefix(c.Text, "//go:build ") {
				said += c.Text + " "
			}
		}
	}
	return said
}
