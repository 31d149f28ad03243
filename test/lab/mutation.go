package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/testkit/patch"
)

// mutation is a way to break the code. It names no file.
type mutation struct {
	patch.Patch
	name    string
	breaks  string // what no longer holds with it, in a sentence
	killers []killer
}

// killer is a test that notices the mutation, or several.
type killer struct {
	run    string   // the pattern that picks it, as -run takes it
	folder string   // of its package
	says   []string // what its output holds when it notices
}

// parseMutation reads a patch: "breaks:" and "killed by:" lines, then lines that begin with a space, - or +. A line
// "says:" tells what the test before it must say.
func parseMutation(name, text string) (m mutation, err error) {
	m.name = name
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch rest, _ := strings.CutPrefix(line, "killed by: "); {
		case strings.HasPrefix(line, "breaks: "):
			m.breaks = strings.TrimPrefix(line, "breaks: ")
		case rest != line:
			args := strings.Fields(rest)
			if len(args) != 3 || args[0] != "-run" {
				return m, fmt.Errorf("%s: want killed by: -run PATTERN FOLDER, got %q", name, line)
			}
			m.killers = append(m.killers, killer{run: args[1], folder: filepath.Clean(args[2])})
		case strings.HasPrefix(line, "says: ") && len(m.killers) > 0:
			last := &m.killers[len(m.killers)-1]
			last.says = append(last.says, strings.TrimPrefix(line, "says: "))
		case line != "" && !m.Add(line):
			return m, fmt.Errorf("%s: no line of a patch: %q", name, line)
		}
	}
	if m.breaks == "" || !m.Changes() {
		return m, fmt.Errorf("%s: want a line that begins with breaks: and a change", name)
	}
	return m, nil
}

// readMutations returns the patches of a folder in order of their names.
func readMutations(folder string) (all []mutation, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parseMutation(strings.TrimSuffix(filepath.Base(file), ".patch"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// source is a file of product code.
type source struct {
	path  string
	lines []string
}

// readSources reads the product code below the root. The folder test holds none.
func readSources(root string) (all []source, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Join(root, "test")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, source{path, strings.Split(string(text), "\n")})
		return err
	})
	return all, err
}

type mutated struct {
	source
	by []string // its lines with the mutation
}

// fit returns the one source that holds the lines of the patch.
func (m *mutation) fit(sources []source) (b mutated, err error) {
	for _, s := range sources {
		by, fits := m.Apply(s.lines)
		if fits > 1 || fits == 1 && b.by != nil {
			return b, fmt.Errorf("%s fits more than once: %s and %s", m.name, b.path, s.path)
		}
		if fits == 1 {
			b = mutated{s, by}
		}
	}
	if b.by == nil {
		return b, fmt.Errorf("%s fits nowhere: its lines have changed", m.name)
	}
	return b, nil
}

// overlay writes the file that a mutation changes, and what "go build -overlay" takes, into a folder.
func overlay(name, folder string) error {
	text, err := os.ReadFile(filepath.Join(mutations, name+".patch"))
	if err != nil {
		return err
	}
	m, err := parseMutation(name, string(text))
	if err != nil {
		return err
	}
	sources, err := readSources(".")
	if err != nil {
		return err
	}
	s, err := m.fit(sources)
	if err != nil {
		return err
	}
	_, err = patch.Overlay(folder, map[string]string{s.path: strings.Join(s.by, "\n")})
	return err
}

func write(path string, lines []string) error {
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}
