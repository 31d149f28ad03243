package ledger

import (
	"fmt"
	"strings"
)

const (
	begin = "<!-- chaos: made by go run ./test/chaos report -->\n"
	end   = "<!-- chaos: end -->\n"
)

// Fill puts the tables between the two marks of the document.
func Fill(document string, lines []Line) (string, error) {
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the document has no place for the tables: want %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + Tables(lines) + "\n" + end + after, nil
}
