// Package pod reads containers of the manifests for Kubernetes as a node does.
package pod

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
)

// Container is what tests need of one.
type Container struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   struct {
			ResourceFieldRef struct{ Resource, Divisor string }
		}
	}
	EnvFrom   []struct{ SecretRef struct{ Name string } }
	Resources struct{ Limits struct{ Memory string } }
}

// Decode reads one document of YAML.
func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	tree, err := yaml.Parser().Unmarshal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// reference is how a variable names one before it.
var reference = regexp.MustCompile(`\$\(\w+\)`)

// Setenv sets the container's own variables.
func (c *Container) Setenv(t *testing.T, all map[string]string) {
	t.Helper()
	for _, e := range c.Env {
		all[e.Name] = reference.ReplaceAllStringFunc(e.Value, func(s string) string { return all[s[2:len(s)-1]] })
		if of := e.ValueFrom.ResourceFieldRef; of.Resource == "limits.memory" && of.Divisor == "1Mi" {
			all[e.Name] = strconv.Itoa(c.Mebibytes(t))
		}
	}
}

// Mebibytes is the limit of memory.
func (c *Container) Mebibytes(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(c.Resources.Limits.Memory, "Gi"))
	if err != nil {
		t.Fatalf("the limit of memory is %s", c.Resources.Limits.Memory)
	}
	return n << 10
}
