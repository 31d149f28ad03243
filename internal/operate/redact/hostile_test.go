//go:build !race

package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are parts of texts that are long to read, if a mask is written carelessly.
var hostile = []string{
	"\"", `""`, `\`, `\"`, "'", "`'", ":", ": ", "=", "==", "[", "{", "[]", "{}", "<", "(", "@", ":@", "://",
	"u:p@h:1 ", "://u:p@", "a", "a ", "a:", "a=", "é", "\xff", "\n", " ", "-", "--x ", ".s", "g ", "…", "u:p…", "eyJ.",
	"eyJ-", "dt_-", "bearer ", "basic YTpi ", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "<token>", "\ncookie: ",
	`cookie: a="`, "token:(a)", "token: [", "token: {", "token='", "token='x' ", `token="`, `token=\"`, `password=\`,
	"tokens=1 ", "otp=1 ", "tokens='", "pwd=",
}

// forms repeat a part up to about n bytes: as it is, in a string of JSON, in strings in one another, as names.
var forms = map[string]func(part string, n int) string{
	"text": func(part string, n int) string { return strings.Repeat(part, n/len(part)) },
	"json": func(part string, n int) string {
		return encoded([]string{strings.Repeat(part, n/len(encoded(part)))})
	},
	"nested": func(part string, n int) string {
		text := strings.Repeat(part, n/len(encoded(encoded(encoded(encoded(part))))))
		for range 4 {
			text = encoded([]string{text})
		}
		return text
	},
	"names": func(part string, n int) string {
		member := encoded(part) + `:"x",`
		return "{" + strings.Repeat(member, n/len(member)) + `"a":1}`
	},
	"strings": func(part string, n int) string {
		value := encoded(part) + ","
		return "[" + strings.Repeat(value, n/len(value)) + "1]"
	},
	// Ever more backslashes before quotation marks, of which none ends what another begins.
	"quoted": func(part string, n int) string {
		var b strings.Builder
		for slashes := 1; b.Len() < n/2; slashes++ {
			b.WriteString("token=" + strings.Repeat(`\`, slashes) + `"`)
		}
		return b.String() + strings.Repeat(part, n/2/len(part))
	},
}

func encoded(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// TestTheWorkGrowsAsTheTextDoes counts what is read ahead.
func TestTheWorkGrowsAsTheTextDoes(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		for _, part := range hostile {
			for _, n := range []int{1 << 14, 1 << 17} {
				text := form(part, n)
				m := masker{redactor: new(Redactor)}
				shown := apply(text, m.parts(nil, text, 0))
				if m.read > 8*len(text) {
					t.Errorf("%s of %q: %d bytes are read as %d", name, part, len(text), m.read)
				}
				if again := Text("t", shown); n == 1<<14 && again != shown {
					t.Errorf("%s of %q is not masked at once", name, part)
				}
			}
		}
	}
}

// BenchmarkHostile reports what a byte of a hostile text costs. It fails where twice the text takes far more than twice
// the time.
func BenchmarkHostile(b *testing.B) {
	best := func(b *testing.B, text string) time.Duration {
		shortest := time.Hour
		for b.Loop() {
			start := time.Now()
			Text("t", text)
			shortest = min(shortest, time.Since(start))
		}
		b.ReportMetric(float64(shortest.Nanoseconds())/float64(len(text)), "ns/byte")
		return shortest
	}
	for name, form := range forms {
		for _, part := range hostile {
			took := map[int]time.Duration{}
			for _, n := range []int{1 << 19, 1 << 20} {
				text := form(part, n)
				b.Run(fmt.Sprintf("%s/%q/%dKiB", name, part, n>>10), func(b *testing.B) { took[n] = best(b, text) })
			}
			if took[1<<20] > 6*took[1<<19] {
				b.Errorf("%s of %q: 1 MiB takes %v, half of it %v", name, part, took[1<<20], took[1<<19])
			}
		}
	}
}

// BenchmarkPage masks what a page shows of 30 tasks.
func BenchmarkPage(b *testing.B) {
	r := new(Redactor)
	for _, part := range []string{`"`, `\"`, `{"a":1,"password":"x"},`, "token=x ", "plain text "} {
		text := strings.Repeat(part, 1<<20/len(part))
		b.Run(fmt.Sprintf("%q", part), func(b *testing.B) {
			for b.Loop() {
				for range 30 {
					r.Beginning("t", text, 1<<10)
				}
			}
		})
	}
}
