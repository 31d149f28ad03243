package main

import "testing"

// A patch whose lines have changed would break nothing, and be missed only when somebody runs it.
func TestEachMutationFitsOnePlace(t *testing.T) {
	t.Parallel()
	all, err := readMutations("mutations")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.target("../.."); err != nil {
			t.Error(err)
		}
		if len(m.killers) == 0 {
			t.Errorf("%s names no test that notices it", m.name)
		}
	}
}
