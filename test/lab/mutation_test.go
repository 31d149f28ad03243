package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A patch whose lines have changed fits nowhere, and a patch whose tests are gone is not noticed. Without this test
// both show only in a run of the mutations.
func TestEachMutationFitsOnePlaceAndNamesItsTests(t *testing.T) {
	t.Parallel()
	all, err := readMutations("mutations")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := readSources("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.fit(sources); err != nil {
			t.Error(err)
		}
		if len(m.killers) == 0 {
			t.Errorf("%s names no test that notices it", m.name)
		}
		for _, k := range m.killers {
			if !exists(t, k) {
				t.Errorf("%s is noticed by %s, which is not in %s", m.name, k.run, k.folder)
			}
		}
	}
}

// exists reports whether the package has the test that the pattern names.
func exists(t *testing.T, k killer) bool {
	t.Helper()
	name, _, _ := strings.Cut(strings.Trim(k.run, "^$"), "$/")
	declared := regexp.MustCompile(`(?m)^func ` + name + `\(t \*testing`)
	files, err := filepath.Glob(filepath.Join("../..", k.folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) {
			return true
		}
	}
	return false
}
