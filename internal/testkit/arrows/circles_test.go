//go:build !race

package arrows

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// largestCircle is how many files of a package may need each other in a circle: from each of them arrows lead to all
// others. So such files cannot be read one after the other.
const largestCircle = 7

func TestFilesFormSmallCirclesAlone(t *testing.T) {
	packages := map[string][]string{}
	for file := range sources(t) {
		if !strings.HasSuffix(file, "_test.go") {
			packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		if circle := circleOf(arrowsOf(t, packages[pkg])); len(circle) > largestCircle {
			t.Errorf("%s: %d files form a circle, want at most %d: %s", pkg, len(circle), largestCircle,
				strings.Join(circle, " "))
		}
	}
}

// arrowsOf returns which files of a package use what others of it declare. Packages that it imports are not read: what
// only their types tell is missed.
func arrowsOf(t *testing.T, names []string) map[string]map[string]bool {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, filepath.Join("../../..", filepath.FromSlash(name)), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	c := types.Config{Importer: nothing{}, Error: func(error) {}} // of the imports that are not there
	pkg, _ := c.Check("", set, files, info)
	arrows := map[string]map[string]bool{}
	for use, of := range info.Uses {
		from, to := filepath.Base(set.Position(use.Pos()).Filename), filepath.Base(set.Position(of.Pos()).Filename)
		if of.Pkg() != pkg || from == to || to == "" {
			continue
		}
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		arrows[from][to] = true
	}
	return arrows
}

type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// circleOf returns the largest set of files that all lead to each other.
func circleOf(arrows map[string]map[string]bool) (largest []string) {
	reached := map[string]map[string]bool{}
	for file := range arrows {
		reached[file] = map[string]bool{}
		for open := []string{file}; len(open) > 0; open = open[1:] {
			for next := range arrows[open[0]] {
				if !reached[file][next] {
					reached[file][next] = true
					open = append(open, next)
				}
			}
		}
	}
	for file := range arrows {
		var circle []string
		for other := range reached[file] {
			if reached[other][file] {
				circle = append(circle, other)
			}
		}
		if len(circle) > len(largest) {
			largest = circle
		}
	}
	slices.Sort(largest)
	return largest
}
