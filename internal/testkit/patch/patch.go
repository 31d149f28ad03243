// Package patch changes files by patches that survive when code moves: they name no lines, and match at any
// indentation. Go builds with the changed files in the place of the real ones. Only test/lab and tests import it.
package patch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Patch replaces lines by others.
type Patch struct{ old, new []string }

// Add reads a line of a patch, which begins with a space, - or +. It reports whether it is one.
func (p *Patch) Add(line string) bool {
	if line == "" || !strings.ContainsRune(" -+", rune(line[0])) {
		return false
	}
	if line[0] != '+' {
		p.old = append(p.old, line[1:])
	}
	if line[0] != '-' {
		p.new = append(p.new, line[1:])
	}
	return true
}

// Changes reports whether the patch names lines and changes something.
func (p *Patch) Changes() bool { return len(p.old) > 0 && !slices.Equal(p.old, p.new) }

// Text is what the patch writes, the whole text of a file that is new.
func (p *Patch) Text() string { return strings.Join(p.new, "\n") + "\n" }

// Apply returns the lines with the patch, and how often it fits. More than once is a mistake of the patch.
func (p *Patch) Apply(lines []string) (patched []string, fits int) {
	for at := range lines {
		if p.fitsAt(lines[at:]) {
			patched = slices.Concat(lines[:at], p.new, lines[at+len(p.old):])
			fits++
		}
	}
	return patched, fits
}

func (p *Patch) fitsAt(lines []string) bool {
	return len(lines) >= len(p.old) && slices.EqualFunc(lines[:len(p.old)], p.old, func(a, b string) bool {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	})
}

// Overlay writes texts into a folder, and beside them overlay.json, which "go build -overlay" takes to build with each
// text in the place of the file that it is named by. It returns the path of overlay.json.
func Overlay(folder string, texts map[string]string) (path string, err error) {
	replace := map[string]string{}
	for name, text := range texts {
		there, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[there] = filepath.Join(folder, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[there], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, list, 0o644)
}
