package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what house measures. They shrink, or grow by what a new promise puts on the way of each task. So did the
// walks, by 12 and 3 files: locked ranges, statements without an answer, callers that leave, a file that was replaced,
// and a slewed clock.
const (
	mostFolders = 20 // of internal
	mostCircle  = 7  // files of a package that all lead to each other
	mostSave    = 41 // files that a save passes
	mostRun     = 22 // files of engine and run queue that a run passes
)

// house says how the code hangs together: for each package its files, the largest circle among them, the names that it
// exports, and how many names of other packages it uses. Then come the walks, lines of Go, and words of the pages. It
// returns an error for what exceeds its bound.
func house(ctx context.Context, out io.Writer) error {
	built, own, err := buildAll(ctx)
	if err != nil {
		return err
	}
	var over []error
	within := func(what string, n, most int) {
		if n > most {
			over = append(over, fmt.Errorf("%s: %d, want at most %d", what, n, most))
		}
	}
	folders := map[string]bool{}
	for _, p := range own {
		s, err := p.survey(built)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, s)
		within("files in a circle of "+s.folder, len(s.circle), mostCircle)
		if folder, inside := strings.CutPrefix(s.folder, "internal/"); inside {
			folder, _, _ = strings.Cut(folder, "/")
			folders[folder] = true
		}
	}
	within("folders of internal", len(folders), mostFolders)
	all, err := walks(ctx)
	if err != nil {
		return err
	}
	for _, w := range all {
		_, _ = fmt.Fprintln(out, w.head())
	}
	within("files that a save passes", len(all[0].files), mostSave)
	within("files of engine and run queue that a run passes", all[1].inside(), mostRun)
	text, err := exec.CommandContext(ctx, "git", "ls-files", "*.go", "README.md", "docs/*.md").Output()
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	sizes, err := count(strings.Fields(string(text)))
	for _, kind := range slices.Sorted(maps.Keys(sizes)) {
		_, _ = fmt.Fprintf(out, "%s: %d\n", kind, sizes[kind])
	}
	return errors.Join(append(over, err)...)
}

// count returns how many lines or words there are of each kind.
func count(files []string) (sizes map[string]int, err error) {
	sizes = map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(file, "docs/adr/"), strings.HasPrefix(file, "docs/zh-CN/"):
		case strings.HasSuffix(file, ".md"):
			sizes["words of README and pages"] += len(bytes.Fields(text))
		case strings.HasSuffix(file, "_test.go"), strings.HasPrefix(file, "test/"),
			strings.HasPrefix(file, "internal/testkit/"):
			sizes["lines of tests and tooling"] += bytes.Count(text, []byte("\n"))
		case strings.Contains("/"+file, "/bench/"):
			sizes["lines of bench"] += bytes.Count(text, []byte("\n"))
		default:
			sizes["lines of product"] += bytes.Count(text, []byte("\n"))
		}
	}
	return sizes, nil
}

// built is a package as the go command has built it.
type built struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// buildAll builds this module. It returns all packages by their paths, and the packages of product code in order.
func buildAll(ctx context.Context) (all map[string]built, own []built, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	text, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("build all packages: %w", err)
	}
	all = map[string]built{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p built
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		all[p.ImportPath] = p
		folder, inside := strings.CutPrefix(p.ImportPath+"/", module)
		if inside && len(p.GoFiles) > 0 && !strings.HasPrefix(folder, "test/") {
			own = append(own, p)
		}
	}
	slices.SortFunc(own, func(a, b built) int { return cmp.Compare(a.ImportPath, b.ImportPath) })
	return all, own, nil
}

// survey is what a package looks like.
type survey struct {
	folder string
	files  int
	circle []string       // the largest one of its files
	names  int            // exported ones, methods included
	uses   map[string]int // how many names of each other package of the module
}

func (s survey) String() string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %d files, %d exported names", s.folder, s.files, s.names)
	if len(s.circle) > 1 {
		fmt.Fprintf(&line, ", a circle of %d (%s)", len(s.circle), strings.Join(s.circle, " "))
	}
	for i, other := range slices.Sorted(maps.Keys(s.uses)) {
		line.WriteString([]string{" → ", ", "}[min(i, 1)])
		fmt.Fprintf(&line, "%s %d", other, s.uses[other])
	}
	return line.String()
}

// survey checks the types of a package, and follows each name to the file that declares it.
func (p built) survey(all map[string]built) (s survey, err error) {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := config.Check(p.ImportPath, set, files, &info)
	if err != nil {
		return s, err
	}
	s = survey{folder: folderOf(p.ImportPath), files: len(files), names: exported(checked), uses: map[string]int{}}
	arrows, used := map[string][]string{}, map[types.Object]bool{}
	for name, object := range info.Uses {
		switch of := object.Pkg(); {
		case of == nil:
		case of == checked:
			from, to := set.Position(name.Pos()).Filename, set.Position(object.Pos()).Filename
			arrows[filepath.Base(from)] = append(arrows[filepath.Base(from)], filepath.Base(to))
		case strings.HasPrefix(of.Path()+"/", module) && !used[object]:
			used[object] = true
			if _, isPackage := object.(*types.PkgName); !isPackage {
				s.uses[folderOf(of.Path())]++
			}
		}
	}
	s.circle = largestCircle(arrows)
	return s, nil
}

func folderOf(path string) string {
	return cmp.Or(strings.Trim(strings.TrimPrefix(path+"/", module), "/"), ".")
}

// exported counts the names of a package that others can use, with the methods of its types.
func exported(p *types.Package) (n int) {
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		n++
		if named, is := object.Type().(*types.Named); is && object.Pkg() == named.Obj().Pkg() {
			if _, isType := object.(*types.TypeName); isType {
				for method := range named.Methods() {
					if method.Exported() {
						n++
					}
				}
			}
		}
	}
	return n
}

// largestCircle returns the largest set of files that all lead to each other, in order.
func largestCircle(arrows map[string][]string) (largest []string) {
	reached := map[string]map[string]bool{}
	for from := range arrows {
		reached[from] = map[string]bool{}
		for open := []string{from}; len(open) > 0; open = open[1:] {
			for _, to := range arrows[open[0]] {
				if !reached[from][to] {
					reached[from][to] = true
					open = append(open, to)
				}
			}
		}
	}
	for from := range arrows {
		var circle []string
		for to := range reached[from] {
			if reached[to][from] {
				circle = append(circle, to)
			}
		}
		slices.Sort(circle)
		if len(circle) > len(largest) || len(circle) == len(largest) && slices.Compare(circle, largest) < 0 {
			largest = circle
		}
	}
	return largest
}
