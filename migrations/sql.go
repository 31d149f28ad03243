package migrations

import (
	"io/fs"
	"strings"

	"github.com/delaytask/delaytask/internal/sqlstore"
)

// SQL returns the statements that create everything from nothing, for a DBA to read or to run in a client. Running them
// twice is harmless, and [Up] afterwards only takes note of them. It returns "" for an unknown kind.
func SQL(kind sqlstore.Kind) string {
	names, err := files(kind)
	if err != nil {
		return ""
	}
	var out strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(trees, kind.String()+"/"+name)
		if err != nil {
			return "" // embedded files can be read
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		out.WriteString("-- " + name + "\n")
		for line := range strings.Lines(up) {
			if !strings.HasPrefix(line, "-- +goose") {
				out.WriteString(line)
			}
		}
	}
	return strings.TrimSpace(out.String()) + "\n"
}
