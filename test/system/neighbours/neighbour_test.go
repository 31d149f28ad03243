package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/test/lab/record"
)

func TestEveryStatementOfThePagesIsANeighbour(t *testing.T) {
	root, err := record.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pages, err := readPages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range pages {
		if !slices.ContainsFunc(neighbours, func(n neighbour) bool { return n.has(s) }) {
			t.Errorf("no neighbour has this statement of a page:\n%s", s)
		}
	}
	for _, n := range neighbours {
		for _, text := range n.page {
			if !slices.ContainsFunc(pages, func(s string) bool { return strings.Contains(s, text) }) {
				t.Errorf("%s: no page has a statement with %q", n.name, text)
			}
		}
	}
}
