package documents

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// The owners of a service have to look after what it links by importing delaytask. SQLite, Prometheus and all that
// serves HTTP come with packages of their own.
func TestMySQLProgramLinksFewModules(t *testing.T) {
	t.Parallel()
	const format = "{{with .Module}}{{.Path}}{{end}}"
	out, err := exec.Command("go", "list", "-deps", "-f", format, "./testdata/minimal").Output()
	servertest.OK(t, err)
	modules := slices.Sorted(slices.Values(strings.Fields(string(out))))
	modules = slices.Compact(modules)
	if len(modules) > 16 {
		t.Errorf("a program on MySQL links %d modules, want at most 16: %s", len(modules), strings.Join(modules, " "))
	}
	for _, module := range modules {
		for _, unwanted := range []string{"modernc.org/", "github.com/prometheus/", "huma", "koanf", "cobra"} {
			if strings.Contains(module, unwanted) {
				t.Errorf("a program on MySQL links %s", module)
			}
		}
	}
}

// The program that is built above links no SQLite, and says what to import.
func TestProgramWithoutADriverSaysWhatToImport(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "run", "./testdata/nodriver").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `import _ "github.com/delaytask/delaytask/sqlite"`) {
		t.Errorf("it says %s, %v", out, err)
	}
}
