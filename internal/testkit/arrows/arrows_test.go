//go:build !race

package arrows

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/delaytask/delaytask"

// floors orders the packages: an import must lead to a lower floor. A folder stands for everything in it.
var floors = [][]string{
	{"internal/ids", "internal/testkit/journal",
		"internal/operate/redact", "internal/eyes/sentence", "internal/hostname"},
	{".", "internal/testkit/linear"},
	{"report", "internal/request"},
	{"internal/row", "internal/schedules/spec"},
	{"processor"},
	{
		"internal/operate/access", "internal/server/browser", "internal/server/crowd",
		"internal/testkit/arrows", "internal/testkit/pod", "internal/lifecycle/batch", "internal/lifecycle/child",
		"internal/lifecycle/clock",
		"internal/cluster", "internal/testkit/dbtest", "internal/metrics",
		"internal/server/otlp", "internal/server/encrypted", "internal/testkit/stall", "internal/testkit",
		"internal/runqueue/timer", "internal/server/traces", "internal/testkit/usage",
		"internal/store", "internal/wire", "processor/webhook", "scanner",
	},
	{"internal/operate/audit", "internal/lifecycle", "internal/eyes/listing", "internal/runqueue",
		"internal/schedules/decide",
		"internal/cluster/wake", "internal/store/sqlstore/sqlitedriver", "metrics"},
	{"internal/operate/bulk", "internal/eyes/explain",
		"internal/eyes/forecast",
		"internal/eyes/rollup", "internal/eyes/standing",
		"internal/testkit/air", "internal/testkit/judge"},
	{"internal/engine/table"},
	{"internal/engine/events", "internal/save", "internal/schedules/plan"},
	{"internal/engine/arm", "internal/engine/control"},
	{"internal/engine/run"},
	{"internal/engine/lease"},
	{"internal/engine/find"},
	{"internal/engine", "internal/eyes/overview", "client"},
	{"internal/store/sqlstore", "internal/store/memstore", "internal/testkit/faultstore",
		"internal/testkit/history",
		"internal/testkit/storetest"},
	{"migrations", "internal/core", "internal/testkit/sim", "sqlite"},
	{"scheduler", "internal/doctor"},
	{"internal/operate", "internal/server/reqbody", "internal/bench/lateness"},
	{"dashboard", "delaytasktest", "internal/server/compat", "internal/server/config", "internal/server/push"},
	{"internal/server/api"},
	{"internal/server/signin"},
	{"internal/server"},
	{"internal/bench"},
	// On the uppermost floor: tests alone import servertest.
	{"cmd", "test", "examples", "bench", "internal/testkit/servertest",
		"internal/testkit/webhooktest"},
}

// own narrows the floors where a package may know only a few others.
var own = map[string][]string{
	".":                        {"internal/ids"},
	"report":                   {"."},
	"internal/request":         {"."},
	"processor":                {".", "internal/request", "report"},
	"internal/ids":             {},
	"internal/row":             {".", "report", "internal/ids"},
	"internal/operate/redact":  {},
	"internal/eyes/sentence":   {},
	"internal/testkit/dbtest":  {},
	"internal/testkit/journal": {},
	"metrics":                  {"internal/metrics"}, // a scrape reads memory, and no database
	"internal/testkit/judge": {".", "internal/testkit/journal", "internal/testkit/linear", "internal/row",
		"internal/schedules/decide", "internal/schedules/spec"},
	"internal/testkit/linear":  {"internal/testkit/journal"},
	"internal/testkit/history": {"internal/row", "internal/store", "internal/testkit/journal"},
	"internal/wire":            {".", "report", "internal/request"},
	"internal/operate/bulk": {"internal/operate/audit", "internal/row", "internal/store", "internal/wire",
		"processor", ".", "report"},
	"internal/schedules/spec": {".", "internal/request"}, // of request: which word is near
	// What is changed by request knows nothing of what runs.
	"internal/engine/control": {"internal/engine/events", "internal/engine/table", "internal/lifecycle",
		"internal/lifecycle/batch", // cuts what one statement takes
		"internal/eyes/listing", "internal/row", "internal/save", "internal/store", "processor", ".",
		"internal/request"},
	"internal/schedules/decide": {"internal/row", "internal/schedules/spec", "processor", "."},
	"internal/eyes/forecast": {"internal/row", "internal/schedules/spec", "internal/schedules/decide",
		"internal/store", "processor", ".",
		"report"},
	"internal/eyes/overview": {"internal/cluster", "internal/eyes/forecast", "internal/eyes/listing",
		"internal/operate/redact",
		"internal/eyes/rollup", "internal/eyes/standing", "internal/row", "internal/eyes/sentence",
		"internal/store", "processor",
		".", "report"},
	"internal/operate/access":   {"internal/row", "processor", "."}, // of processor: which tags there are
	"internal/server/browser":   {},
	"internal/server/crowd":     {},
	"internal/server/encrypted": {},
	"internal/server/otlp":      {"internal/hostname"},
	"internal/runqueue":         {".", "internal/row", "internal/runqueue/timer"},
	"internal/testkit/stall":    {},
	"internal/server/traces":    {},
	"processor/webhook":         {"processor", ".", "internal/hostname"},
	"scanner":                   {"internal/row", "processor", "."},
	// Of redact: how secrets are masked before * stand for their digits.
	"internal/eyes/standing": {"internal/row", "internal/schedules/decide", "internal/schedules/spec"},
	"internal/eyes/listing":  {"internal/operate/redact", "internal/row", "internal/store"},
	"internal/operate/audit": {"internal/row", "internal/store", "processor", ".", "report"},
	"internal/cluster/wake":  {"internal/metrics", "internal/row", "processor", "."},
	// Of row: how errors are told. Of webhook: how a call is signed.
	"client": {"internal/wire", "internal/lifecycle/batch", "internal/row", "processor",
		"processor/webhook", ".",
		"report", "internal/ids", "internal/request"},
	"internal/store/sqlstore": {"internal/row", "internal/store", "internal/cluster", "processor",
		"internal/ids", ".", "report"},
	"internal/store/memstore": {"internal/row", "internal/store", "processor", "internal/ids", "."},
}

// standard lists packages that import the standard library alone, so that importing them costs a user nothing.
var standard = []string{".", "report", "processor", "internal/request", "internal/ids", "internal/row",
	"internal/testkit/journal", "internal/operate/redact",
	"internal/eyes/sentence"}

// only says where a foreign module may be imported, tests included where the value says so.
var only = map[string]struct {
	packages []string
	tests    bool
}{
	"github.com/robfig/cron":    {packages: []string{"scanner", "internal/schedules/spec"}, tests: true},
	"github.com/testcontainers": {packages: []string{"internal/testkit/dbtest/container"}, tests: true},
	"github.com/go-json-experiment": {packages: []string{"internal/server/compat",
		"internal/server/api"}, tests: true},
	"github.com/go-sql-driver": {packages: []string{"internal/store/sqlstore", "internal/testkit/dbtest",
		"bench/peers", "migrations", "scheduler", "test/system/attacks", "test/system/chaos",
		"test/system/neighbours"}},
	"modernc.org/sqlite": {packages: []string{"internal/store/sqlstore/sqlitedriver",
		"internal/testkit/dbtest", "bench/peers",
		"migrations", "scheduler"}},
	"github.com/pressly/goose": {packages: []string{"migrations"}},
	"github.com/knadh/koanf":   {packages: []string{"internal/server/config", "internal/testkit/pod"}},
	"github.com/spf13/cobra":   {packages: []string{"cmd"}},
	"github.com/prometheus": {packages: []string{"metrics", "=internal/server",
		"bench", "scheduler"}},
	"go.opentelemetry.io/otel": {packages: []string{"scheduler", "internal/core", "cmd", "=internal/server",
		"internal/server/api",
		"internal/server/otlp", "internal/server/traces"}},
	// A program chooses how spans are exported, not the library.
	"go.opentelemetry.io/otel/sdk":       {packages: []string{"internal/server/otlp"}},
	"go.opentelemetry.io/otel/exporters": {packages: []string{"internal/server/otlp"}},
	"go.opentelemetry.io/proto":          {},
	"google.golang.org/protobuf":         {},
	"golang.org/x/sys":                   {packages: []string{"internal/lifecycle/clock", "test/system/chaos"}},
	"golang.org/x/sync": {packages: []string{"dashboard", "internal/operate/access", "internal/server/api",
		"internal/server/signin"}},
	"golang.org/x/time": {packages: []string{"dashboard", "processor/webhook", "internal/server/otlp",
		"=internal/server", "internal/server/api", "internal/server/signin"}},
	// The names and values of headers are checked as net/http does.
	"golang.org/x/net":                  {packages: []string{"processor/webhook"}},
	"github.com/danielgtaylor":          {packages: []string{"internal/server/api"}},
	"github.com/sony/gobreaker":         {packages: []string{"processor/webhook"}},
	"github.com/standard-webhooks":      {}, // the reference that signatures are tested against
	"github.com/anishathalye/porcupine": {packages: []string{"internal/testkit/linear"}},
	"github.com/Shopify/toxiproxy":      {packages: []string{"test/system/chaos"}, tests: true},
	"github.com/rs/zerolog":             {packages: []string{"test/system/chaos"}, tests: true},
	"github.com/chromedp":               {packages: []string{"test/system/browser"}, tests: true},
	"github.com/stretchr/testify":       {},
	"go.uber.org/goleak":                {},
	"pgregory.net/rapid": {packages: []string{"internal/testkit/storetest",
		"internal/schedules/spec"}},
	"github.com/jmoiron/sqlx": {packages: []string{"internal/store/sqlstore", "internal/bench",
		"scheduler", "cmd",
		"bench", "test", "examples/orm"}},
	"gorm.io":            {packages: []string{"examples/orm"}, tests: true},
	"entgo.io":           {packages: []string{"examples/orm"}, tests: true},
	"github.com/uptrace": {packages: []string{"examples/orm"}, tests: true},
}

// noDatabase lists packages that must work where there is no database.
var noDatabase = []string{
	"internal/runqueue/timer", "internal/runqueue", "internal/lifecycle/batch",
	"internal/lifecycle/clock", "internal/cluster",
	"internal/operate/access", "internal/server/encrypted", "internal/wire",
	"internal/cluster/wake", "client",
}

func TestImportsFollowTheArrows(t *testing.T) {
	for file, imports := range sources(t) {
		pkg, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
		if floor(pkg) < 0 {
			t.Errorf("%s: package %s has no floor yet: give it one", file, pkg)
		}
		for _, imported := range imports {
			if why := forbidden(pkg, imported, test); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
	}
}

func TestWrongArrowsAreSeen(t *testing.T) {
	for _, tt := range []struct {
		pkg, imported string
		test          bool
		want          string
	}{
		{"internal/engine", module + "/internal/store/sqlstore", false, "arrows point down"},
		{"internal/engine/arm", module + "/internal/engine/run", false, "arrows point down"},
		{"internal/engine/control", module + "/internal/runqueue", false, "may know only"},
		{"internal/runqueue/timer", module + "/internal/lifecycle/clock", false, "arrows point down"},
		{"internal/store/sqlstore", module + "/internal/runqueue/timer", false, "may know only"},
		{"internal/runqueue", module + "/internal/engine", false, "may know only"},
		{"processor", "golang.org/x/sync/errgroup", false, "standard library"},
		{"internal/runqueue/timer", "database/sql", false, "no database"},
		{"internal/engine", "github.com/robfig/cron/v3", true, "only scanner"},
		{"internal/server/api", "github.com/prometheus/client_golang/prometheus", false, "only metrics"},
		{"scheduler", "github.com/testcontainers/testcontainers-go", true, "only internal/testkit/dbtest/container"},
		{"internal/engine", "go.uber.org/goleak", false, "only tests"},
		{"test/api", "github.com/Shopify/toxiproxy/v2", true, "only test/system/chaos"},
		{"client", module + "/scheduler", false, "may know only"},
		{"client", "database/sql", false, "no database"},
		{"internal/engine", "go.opentelemetry.io/otel/trace", false, "internal/server/traces"},
		{"scheduler", "go.opentelemetry.io/otel/sdk/trace", false, "only internal/server/otlp"},
		{"internal/server",
			"go.opentelemetry.io/otel/exporters/otlp/otlptrace", false, "only internal/server/otlp"},

		{"processor", "golang.org/x/time/rate", false, "standard library"},
		{"processor", module + "/processor/webhook", false, "may know only"},
		{"processor/webhook", module + "/internal/row", false, "may know only"},
		{"internal/engine", "github.com/sony/gobreaker/v2", false, "only processor/webhook"},
		{"processor/webhook", module + "/processor", false, ""},
		{"processor/webhook", "golang.org/x/time/rate", false, ""},

		{"internal/engine", module + "/internal/store/memstore", true, ""},
		{"internal/engine", "go.uber.org/goleak", true, ""},
		{"internal/engine", module + "/internal/lifecycle/clock", false, ""},
		{"cmd/delaytask", module + "/scheduler", false, ""},
		{"scheduler", "go.opentelemetry.io/otel/trace", false, ""},
		{"scheduler", "go.opentelemetry.io/otel/sdk/trace", true, ""},
	} {
		got := forbidden(tt.pkg, tt.imported, tt.test)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s imports %s: got %q, want %q", tt.pkg, tt.imported, got, tt.want)
		}
	}
}

// forbidden says why pkg must not import the path, or "". Tests may import upwards: they need stores and databases.
func forbidden(pkg, imported string, test bool) string {
	rel, inside := within(imported)
	if !inside {
		return foreign(pkg, imported, test)
	}
	allowed, narrow := own[pkg]
	switch {
	case test, sameTree(pkg, rel):
		return ""
	case narrow && !slices.Contains(allowed, rel):
		return "it may know only " + cmp.Or(strings.Join(allowed, ", "), "itself")
	case floor(rel) >= floor(pkg):
		return "arrows point down only"
	}
	return ""
}

func foreign(pkg, imported string, test bool) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case slices.Contains(noDatabase, pkg) && !test && strings.HasPrefix(imported, "database/sql"):
		return "it knows no database"
	case !strings.Contains(first, "."):
		return "" // standard library
	case slices.Contains(standard, pkg) && !test:
		return "it imports the standard library alone"
	}
	for prefix, rule := range only {
		in := slices.ContainsFunc(rule.packages, func(p string) bool { return covers(p, pkg) })
		if strings.HasPrefix(imported, prefix) && !in && (!test || rule.tests) {
			return "only " + cmp.Or(strings.Join(rule.packages, ", "), "tests") + " may"
		}
	}
	return ""
}

// within returns a path of this module relative to its root.
func within(imported string) (rel string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// floor returns the floor of the nearest folder that has one, or -1.
func floor(pkg string) int {
	for ; ; pkg = path.Dir(pkg) {
		for i, packages := range floors {
			if slices.Contains(packages, pkg) {
				return i
			}
		}
		if dir := path.Dir(pkg); dir == "." || pkg == "." {
			return -1
		}
	}
}

// covers reports whether the package lies in the folder, or is it where the folder begins with "=".
func covers(folder, pkg string) bool {
	if alone, exactly := strings.CutPrefix(folder, "="); exactly {
		return alone == pkg
	}
	return folder == pkg || folder != "." && strings.HasPrefix(pkg, folder+"/")
}

// sameTree lets a program's own packages know each other.
func sameTree(a, b string) bool {
	return slices.ContainsFunc([]string{"bench", "cmd", "test", "examples/orm"}, func(tree string) bool {
		return covers(tree, a) && covers(tree, b)
	})
}

// sources returns the imports of every Go file that is not generated, by its path from the root. Files are read instead
// of built, so that files for other systems count too.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	const root = "../../.."
	files := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(base) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files[rel] = nil
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			files[rel] = append(files[rel], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestNoTestSleeps lets time pass only where it costs nothing, in a bubble of testing/synctest, and in benchmarks,
// where a sleep plays a slow database. The helper that opens the bubble may be in another file of the package.
func TestNoTestSleeps(t *testing.T) {
	files := sources(t)
	bubbles := map[string]bool{"internal/testkit/arrows": true} // this file names what it looks for
	for file, imports := range files {
		if strings.HasSuffix(file, "_test.go") && slices.Contains(imports, "testing/synctest") {
			bubbles[path.Dir(file)] = true
		}
	}
	for file := range files {
		if !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "bench_test.go") || bubbles[path.Dir(file)] {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("time.Sleep(")) {
			t.Errorf("%s sleeps outside a synctest bubble: wait for a signal instead", file)
		}
	}
}
