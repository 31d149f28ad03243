package deploy

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

const rulesFile = root + "/deploy/prometheus/delaytask.rules.yml"

type rule struct{ Alert, Expr string }

func loadRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	text, err := os.ReadFile(rulesFile)
	servertest.OK(t, err)
	servertest.OK(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// An alert that fires in no test may never fire. In the test of a healthy service none does.
func TestEachAlertIsTestedAndDescribed(t *testing.T) {
	var want []string
	for _, r := range loadRules(t) {
		want = append(want, r.Alert)
	}
	slices.Sort(want)
	for path, named := range map[string]string{
		root + "/deploy/prometheus/delaytask.rules.test.yml": `\{alertname="(\w+)"\}`,
		root + "/docs/operations.md":                         "(?m)^\\| `(Delaytask\\w+)` \\|",
	} {
		text, err := os.ReadFile(path)
		servertest.OK(t, err)
		var got []string
		for _, found := range regexp.MustCompile(named).FindAllStringSubmatch(string(text), -1) {
			got = append(got, found[1])
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s names %q, the rules are %q", path, got, want)
		}
	}
}
