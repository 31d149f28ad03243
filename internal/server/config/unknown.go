package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

func unknownKey(path []string) error {
	key := strings.Join(path, ".")
	if _, known := find(settings, key); known {
		return errors.New("a key with dots has to be written nested, one part below the other")
	}
	if isSection(path) {
		return fmt.Errorf("want the keys below it: %s", strings.Join(keysBelow(key), ", "))
	}
	return unknown(Keys(), key)
}

func isSection(path []string) bool { return len(keysBelow(strings.Join(path, "."))) > 0 }

func keysBelow(section string) []string {
	return slices.DeleteFunc(Keys(), func(key string) bool { return !strings.HasPrefix(key, section+".") })
}

// unknown suggests the nearest known word, or all of them when they are few.
func unknown(known []string, word string) error {
	if nearest, ok := nearest(known, word); ok {
		return fmt.Errorf("unknown; did you mean %s?", nearest)
	}
	if len(known) < 6 {
		return fmt.Errorf("unknown; want one of %s", strings.Join(known, ", "))
	}
	return errors.New("unknown")
}

// nearest finds the word whose last part is the same, or else the one with the fewest typing errors, if they are not
// too many for the word's length.
func nearest(known []string, word string) (string, bool) {
	if i := slices.IndexFunc(known, func(k string) bool { return strings.HasSuffix(k, "."+word) }); i >= 0 &&
		word != "" {
		return known[i], true
	}
	best, fewest := "", len(word)/3+2
	for _, k := range known {
		if n := distance(k, word); n < fewest {
			best, fewest = k, n
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
