// Package documents checks the documents: their code, commands and statements run, links lead somewhere, the tests that
// they name exist, and the picture of the demo shows what it prints.
package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/migrations"
	_ "github.com/delaytask/delaytask/sqlite"
)

const root = "../.."

func TestMain(m *testing.M) { os.Exit(servertest.Built{Tests: dbtest.WithServers(m)}.Run()) }

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	link      = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	testName  = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)`)

	// accounts are statements about users, which belong to the server and not to a test's database.
	accounts = regexp.MustCompile(`^(CREATE USER|GRANT) `)
)

// document is a Markdown file, by its path from here.
type document struct{ path, text string }

func documents(t *testing.T, patterns ...string) []document {
	t.Helper()
	var all []document
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no documents %s: %v", pattern, err)
		}
		for _, path := range paths {
			all = append(all, document{path, read(t, path)})
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	servertest.OK(t, err)
	return string(text)
}

// statements returns the statements in one language.
func (d document) statements(language string) (all []string) {
	for _, block := range d.blocks() {
		if block.language == language {
			all = append(all, block.statements()...)
		}
	}
	return all
}

// statements returns the statements of the block. None of them holds a semicolon.
func (b block) statements() (all []string) {
	for statement := range strings.SplitSeq(b.text, ";") {
		if statement = strings.TrimSpace(statement); statement != "" && !accounts.MatchString(statement) {
			all = append(all, statement)
		}
	}
	return all
}

func TestEveryStatementOfTheDocumentsRuns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind, err := sqlstore.Connect(t.Context(), d.DSN)
		servertest.OK(t, err)
		defer db.Close()
		servertest.OK(t, migrations.Up(t.Context(), db.DB, kind))
		client, err := db.Conn(t.Context()) // one, for the transactions of the pages
		servertest.OK(t, err)
		defer client.Close()
		language, ran := "sql", map[string]bool{}
		if kind == sqlstore.SQLite {
			language = "sqlite"
		}
		for _, doc := range documents(t, "*.md", "docs/*.md", "docs/zh-CN/*.md") {
			for _, statement := range doc.statements(language) {
				if ran[statement] && strings.Contains(doc.path, "zh-CN") {
					continue // the English page has it
				}
				ran[statement] = true
				_, err := client.ExecContext(t.Context(), statement)
				for n := 0; n < 100 && err != nil && strings.Contains(err.Error(), "Error 3854"); n++ {
					// Another test's statement is in the list. InnoDB looks anew when it was not asked for 0.1 s.
					_, err = client.ExecContext(t.Context(), "DO SLEEP(0.12)")
					servertest.OK(t, err)
					_, err = client.ExecContext(t.Context(), statement)
				}
				if err != nil {
					t.Errorf("%s: %v in\n%s", doc.path, err, statement)
				}
			}
		}
		if len(ran) == 0 {
			t.Error("the documents hold no statement")
		}
	})
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	pages := documents(t, "*.md", "docs/*.md", "docs/*/*.md", "bench/*.md", "bench/peers/*.md", "internal/bench/*.md",
		"test/lab/results/*.md")
	for _, doc := range pages {
		for _, found := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(doc.text, ""), -1) {
			path, anchor := doc.path, found[2]
			switch {
			case strings.Contains(found[1], "://"):
				continue // pages of others come and go
			case found[1] != "":
				path = filepath.Join(filepath.Dir(doc.path), found[1])
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", doc.path, err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, path)), anchor) {
				t.Errorf("%s: %s has no heading #%s", doc.path, path, anchor)
			}
		}
	}
}

// anchors returns the names that Markdown viewers give to the headings.
func anchors(text string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, found[1]))
	}
	return all
}

func TestEveryTestThatIsNamedExists(t *testing.T) {
	t.Parallel()
	there := testFuncs()
	for _, doc := range documents(t, "*.md", "docs/*.md", "docs/*/*.md") {
		for _, name := range testName.FindAllString(codeBlock.ReplaceAllString(doc.text, ""), -1) {
			if !there[name] {
				t.Errorf("%s names %s, which is not there", doc.path, name)
			}
		}
	}
}

// testFuncs has the names of all tests of the module.
var testFuncs = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllSubmatch(text, -1) {
			names[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return names
})
