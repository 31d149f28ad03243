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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/golden"
)

// public lists the packages that users import.
var public = []string{
	".", "processor", "processor/webhook", "scanner", "client", "delaytasktest", "migrations",
}

// logging lists the packages whose log messages operators search for.
var logging = []string{
	"internal/engine", "internal/lifecycle", "internal/runqueue", "internal/save", "internal/sqlstore", "scanner",
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
var levels = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "Log": 2, "LogAttrs": 2}

func TestLogMessages(t *testing.T) {
	var all []string
	for _, folder := range logging {
		_, files := parsed(t, folder)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if said := message(n); said != "" {
					all = append(all, said+"\n")
				}
				return true
			})
		}
	}
	slices.Sort(all)
	golden.Check(t, "testdata/log.txt", strings.Join(all, ""))
}

// message returns the level, the message and the keys of a call that logs, or "".
func message(n ast.Node) string {
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
	said := strings.ToUpper(method.Sel.Name) + " " + text(call.Args[at])
	for i := at + 1; i < len(call.Args); i += 2 {
		said += " " + text(call.Args[i])
	}
	return said
}

// text is the value of a string literal, or the source of any other expression.
func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		return constant.StringVal(constant.MakeFromLiteral(literal.Value, token.STRING, 0))
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
