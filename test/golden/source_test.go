package golden

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/golden"
)

// public lists the packages that users import.
var public = []string{
	".", "scheduler", "report", "processor", "processor/webhook", "scanner", "client", "delaytasktest", "migrations",
}

// unlogged lists the folders whose log messages operators do not search for: tests, examples and measurements.
var unlogged = []string{"test", "internal/testkit", "internal/bench", "bench", "examples"}

// product lists the folders of the others.
func product(t *testing.T) (folders []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(unlogged, path) || path != "." && path[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			folders = append(folders, filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func TestPublicDeclarations(t *testing.T) {
	var all strings.Builder
	for _, folder := range public {
		fmt.Fprintf(&all, "package %s\n\n%s\n", folder, strings.Join(declared(t, folder), "\n"))
	}
	golden.Check(t, "testdata/api.txt", all.String())
}

// declared returns what a package exports, each declaration by itself, in the order of the alphabet.
func declared(t *testing.T, folder string) (all []string) {
	t.Helper()
	set, files := parsed(t, folder)
	for _, file := range files {
		if !ast.FileExports(file) {
			continue
		}
		for _, d := range file.Decls {
			if function, ok := d.(*ast.FuncDecl); ok {
				if !ofExported(function) {
					continue
				}
				function.Body = nil
				all = append(all, printed(t, set, function))
				continue
			}
			group := d.(*ast.GenDecl)
			if group.Tok == token.IMPORT {
				continue
			}
			for _, spec := range group.Specs {
				all = append(all, printed(t, set, &ast.GenDecl{Tok: group.Tok, Specs: []ast.Spec{spec}}))
			}
		}
	}
	slices.Sort(all)
	return all
}

// ofExported reports whether users can call the method, as they can any function.
func ofExported(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return true
	}
	receiver := types.ExprString(function.Recv.List[0].Type)
	return ast.IsExported(strings.TrimPrefix(receiver, "*"))
}

func printed(t *testing.T, set *token.FileSet, node any) string {
	t.Helper()
	var text bytes.Buffer
	if err := format.Node(&text, set, node); err != nil {
		t.Fatal(err)
	}
	return text.String() + "\n"
}

// levels are the methods of a logger that say a message, with the place of the message among the arguments.
var levels = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1,
	"ErrorContext": 1, "Log": 2, "LogAttrs": 2,
}

func TestLogMessages(t *testing.T) {
	var all []string
	for _, folder := range product(t) {
		_, files := parsed(t, folder)
		known := constants(files)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if said := known.message(n); said != "" {
					all = append(all, said+"\n")
				}
				return true
			})
		}
	}
	slices.Sort(all)
	golden.Check(t, "testdata/log.txt", strings.Join(slices.Compact(all), ""))
}

// texts are the values of the constants of a package, by their names.
type texts map[string]ast.Expr

func constants(files []*ast.File) texts {
	known := texts{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					if c := s.(*ast.ValueSpec); len(c.Names) == len(c.Values) {
						for i, name := range c.Names {
							known[name.Name] = c.Values[i]
						}
					}
				}
			}
			return true
		})
	}
	return known
}

// message returns the level, the message and the keys of a call that logs, or "".
func (t texts) message(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasSuffix(strings.ToLower(types.ExprString(method.X)), "log") {
		return ""
	}
	at, ok := levels[method.Sel.Name]
	if !ok || len(call.Args) <= at {
		return ""
	}
	said := strings.ToUpper(strings.TrimSuffix(method.Sel.Name, "Context")) + " " + t.text(call.Args[at])
	for i := at + 1; i < len(call.Args); i += 2 {
		said += " " + t.text(call.Args[i])
	}
	return said
}

// text is the value of a string, or the source of any other expression.
func (t texts) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, token.STRING, 0))
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return t.text(e.X) + t.text(e.Y)
		}
	case *ast.Ident:
		if value := t[e.Name]; value != nil {
			return t.text(value)
		}
	}
	return types.ExprString(e)
}

// parsed reads the files of a package of the module, tests left out and comments too.
func parsed(t *testing.T, folder string) (set *token.FileSet, files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	set = token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return set, files
}
