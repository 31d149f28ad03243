package signin

import (
	"os"
	"regexp"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// Every code with which the service refuses a request before it reaches a page has a Chinese text.
func TestEveryRefusalHasAChineseText(t *testing.T) {
	codes := map[string]string{
		"Internal": wire.CodeInternal, "Misdirected": wire.CodeMisdirected, "Stopping": wire.CodeStopping,
		"Unavailable": wire.CodeUnavailable, "Unauthorized": wire.CodeUnauthorized,
		"InvalidHeader": wire.CodeInvalidHeader,
	}
	for file, before := range map[string]string{
		"guard.go": `a\.refuse\(w, r, `, "auth.go": `(?:Caller\{\}, |return )`,
	} {
		source, err := os.ReadFile("../api/" + file)
		if err != nil {
			t.Fatal(err)
		}
		refusal := regexp.MustCompile(before + `wire\.NewProblem\(http\.\w+, wire\.Code(\w+)`)
		found := refusal.FindAllStringSubmatch(string(source), -1)
		if len(found) == 0 {
			t.Errorf("%s refuses nothing", file)
		}
		for _, m := range found {
			// The one has a text of its own; the other is of rights, which pages look at themselves.
			if m[1] == "CrossOrigin" || m[1] == "Forbidden" {
				continue
			}
			if chinese.Refused[codes[m[1]]] == "" {
				t.Errorf("%s: the code %s has no text", file, m[1])
			}
		}
	}
}
