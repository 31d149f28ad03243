package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is a way to break the code. Its patch names no file and its lines match at any indentation, so that it
// survives when the code moves.
type mutation struct {
	name    string
	breaks  string // what no longer holds with it, in a sentence
	killers []killer
	old     []string
	new     []string
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
		case strings.HasPrefix(line, " "):
			m.old, m.new = append(m.old, line[1:]), append(m.new, line[1:])
		case strings.HasPrefix(line, "-"):
			m.old = append(m.old, line[1:])
		case strings.HasPrefix(line, "+"):
			m.new = append(m.new, line[1:])
		case line != "":
			return m, fmt.Errorf("%s: no line of a patch: %q", name, line)
		}
	}
	if m.breaks == "" || len(m.old) == 0 || slices.Equal(m.old, m.new) {
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

// mutated is a source with a mutation.
type mutated struct {
	source
	by []string // its lines with the mutation
}

// fit returns the one source that holds the lines of the patch.
func (m *mutation) fit(sources []source) (b mutated, err error) {
	for _, s := range sources {
		for at := range s.lines {
			if !m.fitsAt(s.lines[at:]) {
				continue
			}
			if b.by != nil {
				return b, fmt.Errorf("%s fits more than once: %s and %s", m.name, b.path, s.path)
			}
			b = mutated{s, slices.Concat(s.lines[:at], m.new, s.lines[at+len(m.old):])}
		}
	}
	if b.by == nil {
		return b, fmt.Errorf("%s fits nowhere: its lines have changed", m.name)
	}
	return b, nil
}

func (m *mutation) fitsAt(lines []string) bool {
	return len(lines) >= len(m.old) && slices.EqualFunc(lines[:len(m.old)], m.old, func(a, b string) bool {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	})
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
	path, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	by := filepath.Join(folder, filepath.Base(path))
	if err := write(by, s.by); err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: by}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), replace, 0o644)
}

func write(path string, lines []string) error {
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}
