package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is a way to break the code. Its patch names no file, so that it survives when the code moves.
type mutation struct {
	name    string
	breaks  string   // what no longer holds, in a sentence
	killers []string // arguments of go test that notice it: a pattern of -run and a package
	old     string
	new     string
}

// parseMutation reads a patch: "breaks:" and "killed by:" lines, then lines that begin with a space, - or +.
func parseMutation(name, text string) (m mutation, err error) {
	m.name = name
	var before, after strings.Builder
	for line := range strings.Lines(text) {
		rest, header := strings.CutPrefix(line, "breaks: ")
		killer, killed := strings.CutPrefix(line, "killed by: ")
		switch {
		case header:
			m.breaks = strings.TrimSpace(rest)
		case killed:
			m.killers = append(m.killers, strings.TrimSpace(killer))
		case strings.HasPrefix(line, " "):
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		case strings.TrimSpace(line) != "":
			return m, fmt.Errorf("%s: no line of a patch: %q", name, line)
		}
	}
	m.old, m.new = before.String(), after.String()
	if m.breaks == "" || m.old == m.new {
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

// target returns the one file of product code below the root that holds the lines of the patch.
func (m *mutation) target(root string) (found string, err error) {
	old := []byte(m.old)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch times := bytes.Count(text, old); {
		case times > 1 || times == 1 && found != "":
			return fmt.Errorf("%s fits more than once: in %s", m.name, path)
		case times == 1:
			found = path
		}
		return nil
	})
	if err == nil && found == "" {
		err = fmt.Errorf("%s fits nowhere: its lines have changed", m.name)
	}
	return found, err
}

// apply breaks the code below the root, and returns what mends it again.
func (m *mutation) apply(root string) (mend func() error, err error) {
	file, err := m.target(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	broken := bytes.Replace(text, []byte(m.old), []byte(m.new), 1)
	return func() error { return os.WriteFile(file, text, 0o644) }, os.WriteFile(file, broken, 0o644)
}
