package sqlcheck

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// Tests of the main module write these files from what they see on the wire, and fail when they are not true any more.
var files = []string{
	"../../../internal/store/sqlstore/testdata/statements.sql",
	"../../../migrations/testdata/statements.sql",
}

func TestEveryStatementParsesAndHoldsNothingThatIsRefused(t *testing.T) {
	met, stumbled := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, sql := range split(string(text)) {
			statements, _, err := parser.New().Parse(sql, "", "")
			if err != nil {
				if text := known(sql); text != "" {
					stumbled[text] = true
				} else {
					t.Errorf("%s, statement %d: TiDB's parser refuses it: %v\n%s", file, i+1, err, sql)
				}
				continue
			}
			for _, statement := range statements {
				for _, r := range refusals {
					if !holds(statement, r) {
						continue
					}
					met[r.what] = true
					if r.accepted == "" {
						t.Errorf("%s, statement %d: %s is refused by %s (%s)\n%s",
							file, i+1, r.what, r.by, r.source, sql)
					}
				}
			}
		}
	}
	for _, r := range refusals {
		if r.accepted != "" && !met[r.what] {
			t.Errorf("no statement holds %s any more: it needs no excuse", r.what)
		}
	}
	for _, u := range unreadable {
		if !stumbled[u.text] {
			t.Errorf("the parser stumbles over no %s any more: it needs no excuse", u.text)
		}
	}
}

// known returns what of a statement is known to be unreadable. Without that it has to be readable.
func known(sql string) string {
	for _, u := range unreadable {
		if !strings.Contains(sql, u.text) {
			continue
		}
		if _, _, err := parser.New().Parse(withoutDefaults.ReplaceAllString(sql, ""), "", ""); err == nil {
			return u.text
		}
	}
	return ""
}

// withoutDefaults finds defaults that are expressions.
var withoutDefaults = regexp.MustCompile(`DEFAULT \((?:[^()]|\([^()]*\))*\)`)

// Each entry has to find what it is about.
func TestEveryRefusalIsFound(t *testing.T) {
	for _, r := range refusals {
		statement, err := parser.New().ParseOneStmt(r.example, "", "")
		if err != nil {
			t.Errorf("%s: %v", r.what, err)
			continue
		}
		if !holds(statement, r) {
			t.Errorf("%s is not found in %s", r.what, r.example)
		}
		if r.by == "" || !strings.HasPrefix(r.source, "https://") {
			t.Errorf("%s names no source", r.what)
		}
	}
}

// split cuts at the semicolons that end a line.
func split(text string) []string {
	parts := strings.Split(text, ";\n")
	return slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

func holds(statement ast.StmtNode, r refusal) bool {
	v := &finder{refused: r.is}
	statement.Accept(v)
	return v.found
}

// finder looks at every node of a statement.
type finder struct {
	refused func(ast.Node) bool
	found   bool
}

func (f *finder) Enter(n ast.Node) (ast.Node, bool) {
	f.found = f.found || f.refused(n)
	return n, f.found
}

func (f *finder) Leave(n ast.Node) (ast.Node, bool) { return n, true }
