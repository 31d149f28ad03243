package record

import (
	"fmt"
	"strings"
)

// Fill puts tables between two marks of a document, which name what they show and the command that makes them.
func Fill(document, what, command, tables string) (string, error) {
	begin, end := fmt.Sprintf("<!-- %s: made by %s -->\n", what, command), fmt.Sprintf("<!-- %s: end -->\n", what)
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the document has no place for the tables: want %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + tables + "\n" + end + after, nil
}
