package orm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

var (
	goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")
	indent  = regexp.MustCompile(`(?m)^[ \t]+`)
)

func TestEachGoBlockOfThePageIsPartOfThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/transactions.md")
	servertest.OK(t, err)
	files, err := filepath.Glob("*.go")
	servertest.OK(t, err)
	var code strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		servertest.OK(t, err)
		code.WriteString(indent.ReplaceAllString(string(source), ""))
	}
	blocks := goBlock.FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("the page has no Go block")
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), indent.ReplaceAllString(string(block[1]), "")) {
			t.Errorf("no file has the block\n%s", block[1])
		}
	}
}
