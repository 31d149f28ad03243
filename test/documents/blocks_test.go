package documents

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/patch"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor/webhook"
)

// block is a fenced block of a document.
type block struct {
	at       string // path and line
	before   string // the paragraph before it
	language string
	text     string
}

var fence = regexp.MustCompile("(?s)(?:^|\n)( *)```([a-z]*)\n(.*?)```")

func (d document) blocks() (all []block) {
	for _, found := range fence.FindAllStringSubmatchIndex(d.text, -1) {
		line := 1 + strings.Count(d.text[:found[4]], "\n")
		text := strings.ReplaceAll("\n"+d.text[found[6]:found[7]], "\n"+d.text[found[2]:found[3]], "\n")
		before := strings.TrimSpace(d.text[:found[2]])
		all = append(all, block{filepath.Base(d.path) + ":" + strconv.Itoa(line),
			before[strings.LastIndex(before, "\n\n")+1:], d.text[found[4]:found[5]], text[1:]})
	}
	return all
}

// checks are what a block of each language must stand.
var checks = map[string]func(block, *testing.T){
	"go":      block.isTested,
	"ts":      block.isTested,
	"json":    block.isRequest,
	"mermaid": block.isDrawing,
	"":        block.isDrawing,
	"diff":    block.isCommitted,
	"sh":      block.runs,
	"sql":     block.isStatement,
	"sqlite":  block.isStatement,
	"yaml":    block.isConfiguration,
}

func TestEveryBlockOfThePagesWorks(t *testing.T) {
	t.Parallel()
	for _, page := range documents(t, "README.md", "docs/*.md") {
		if fences := strings.Count(page.text, "```"); fences != 2*len(page.blocks()) {
			t.Errorf("%s has %d fences and %d blocks", page.path, fences, len(page.blocks()))
		}
		if filepath.Base(page.path) == "quickstart.md" {
			continue // TestQuickStarts follows it
		}
		for _, b := range page.blocks() {
			t.Run(b.at, func(t *testing.T) {
				t.Parallel()
				check, known := checks[b.language]
				if !known {
					t.Fatalf("nothing checks blocks of %q", b.language)
				}
				check(b, t)
			})
		}
	}
}

func (b block) isDrawing(*testing.T) {}

// isCommitted leaves the block to TestEachCommitOfTheWalkPasses.
func (b block) isCommitted(*testing.T) {}

// isStatement leaves the block to TestEveryStatementOfTheDocumentsRuns.
func (b block) isStatement(*testing.T) {}

// isTested requires that the block is a program that works, or is part of a test, line by line: so it is compiled and
// runs, and the test says what it must do.
func (b block) isTested(t *testing.T) {
	if strings.HasPrefix(b.text, "package main\n") {
		b.isProgram(t)
	} else if !strings.Contains(testedCode(), unindented(b.text)) {
		t.Errorf("no test has the lines\n%s", b.text)
	}
}

// testedCode is the code of the tests that users may read. The module examples/orm tests all of its functions.
var testedCode = sync.OnceValue(func() string {
	var code strings.Builder
	tested := []string{"*/example*_test.go", "test/documents/*_test.go", "examples/orm/*.go",
		"test/golden/testdata/*client/*"}
	for _, pattern := range tested {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				panic(err)
			}
			code.WriteString("\n" + unindented(string(text)))
		}
	}
	return code.String()
})

func unindented(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
}

// isProgram runs it in an empty folder, and ends it.
func (b block) isProgram(t *testing.T) {
	const dir = "test/documents/testdata/page"
	overlay, err := patch.Overlay(t.TempDir(), map[string]string{filepath.Join(root, dir, "main.go"): b.text})
	servertest.OK(t, err)
	cmd := exec.Command(servertest.Build(t, "./"+dir, "-overlay", overlay))
	cmd.Dir = t.TempDir()
	p := servertest.Launch(t, cmd)
	servertest.Eventually(t, "the program closes its order", func() bool {
		return strings.Contains(p.Err.String(), "closing order 42\n")
	})
	p.Stops()
}

// isRequest requires the body of a task of the tag http with members that all count: the pages show no other JSON.
func (b block) isRequest(t *testing.T) {
	var members map[string]json.RawMessage
	servertest.OK(t, json.Unmarshal([]byte(b.text), &members))
	without := func(name string) (webhook.Call, error) {
		rest := maps.Clone(members)
		delete(rest, name)
		text, err := json.Marshal(rest)
		servertest.OK(t, err)
		return webhook.ParseRequest(text)
	}
	whole, err := without("")
	servertest.OK(t, err)
	for name := range members {
		if less, err := without(name); err == nil && reflect.DeepEqual(less, whole) {
			t.Errorf("the member %q changes nothing", name)
		}
	}
}

// isConfiguration requires settings of delaytask, or of Prometheus.
func (b block) isConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	servertest.OK(t, os.WriteFile(path, []byte(b.text), 0o600))
	keys, err := yaml.Parser().Unmarshal([]byte(b.text))
	servertest.OK(t, err)
	if keys["scrape_configs"] == nil {
		_, err := config.Load(config.Source{Path: path})
		servertest.OK(t, err)
		return
	}
	need(t, "promtool")
	if out, err := exec.Command("promtool", "check", "config", "--syntax-only", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// need skips the test where a program is missing that delaytask itself does not need.
func need(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not on this machine: %v", name, err)
	}
}
