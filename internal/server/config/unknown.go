package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/request"
)

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
	best := request.Nearest(known, word, len(word)/3+1)
	return best, best != ""
}
