package golden

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/redact"
)

// verb is where a sentence has a value.
var verb = regexp.MustCompile(`%(?:\[\d\])?[-+#.0-9]*[a-zA-Z]`)

// values fill the verbs of a sentence: what values are often like, whose mask would be the reader's loss.
func values(of string) string {
	switch of[len(of)-1] {
	case 'q':
		return `"order.close"`
	case 'd':
		return "7"
	case 'w', 'v', 's':
		return "connection refused by 10.0.0.1:3306"
	}
	return "x"
}

// TestTheMaskLeavesOwnSentences holds what the product itself says, in its log, its errors and its answers, against the
// mask of secrets, through which all of it goes.
func TestTheMaskLeavesOwnSentences(t *testing.T) {
	sentences := 0
	for _, folder := range product(t) {
		set, files := parsed(t, folder)
		known := constants(files)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if isUnmasked(n) {
					return false
				}
				e, isExpr := n.(ast.Expr)
				if !isExpr || !isText(e) {
					return true
				}
				said := verb.ReplaceAllStringFunc(known.text(e), values)
				isSQL := strings.Contains(said, " = ?") || strings.Contains(said, "UNHEX(?)")
				if isSQL || !strings.Contains(said, " ") {
					return false
				}
				sentences++
				if shown := redact.Text("", said); shown != said {
					t.Errorf("%s: %q is shown as %q", set.Position(e.Pos()), said, shown)
				}
				return false
			})
		}
	}
	if sentences < 2000 {
		t.Errorf("only %d sentences were found", sentences)
	}
}

// isUnmasked reports whether what is below the node is shown as it is: help, and descriptions in tags of fields.
func isUnmasked(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Field:
		return n.Tag != nil
	case *ast.KeyValueExpr:
		key := types.ExprString(n.Key)
		return key == "Long" || key == "Example"
	}
	return false
}

// isText reports whether an expression is a string, perhaps of several literals.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && isText(e.X) && isText(e.Y)
	}
	return false
}
