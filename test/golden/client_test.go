package golden

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// required turns the reasons to skip into failures, for a machine that must have Node and a way to npm's registry.
var required = os.Getenv("DELAYTASK_REQUIRE_NODE") != ""

func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if required {
		t.Fatalf("DELAYTASK_REQUIRE_NODE is set, and "+format, args...)
	}
	t.Skipf(format, args...)
}

// TestAGeneratedClientSavesAndPops generates a client from the description of the API of a running service, with a
// generator that knows nothing of delaytask, and lets it save and pop tasks.
func TestAGeneratedClientSavesAndPops(t *testing.T) {
	if testing.Short() {
		t.Skip("installs packages from npm")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "there is no %s here", program)
		}
	}
	folder := filepath.Join(t.TempDir(), "client")
	if err := os.CopyFS(folder, os.DirFS("testdata/client")); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
	if err != nil {
		missing(t, "npm cannot install the generator; it needs the network: %v\n%s", err, out)
	}
	url := serve(t)
	bin := func(name string) string { return filepath.Join(folder, "node_modules", ".bin", name) }
	for _, command := range [][]string{
		{bin("openapi-typescript"), url + "/openapi.json", "--output", "schema.ts"},
		{bin("tsc")},
		{"node", "client.js", url},
	} {
		if out, err := run(t, folder, command[0], command[1:]...); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(command[0]), err, out)
		}
	}
}

// needsGenerators skips tests that compile or install what is large.
func needsGenerators(t *testing.T) {
	t.Helper()
	if os.Getenv("DELAYTASK_TEST_GENERATORS") == "" {
		t.Skip("DELAYTASK_TEST_GENERATORS is not set: make generators sets it")
	}
}

func TestAGeneratedClientInGoSavesAndPops(t *testing.T) {
	needsGenerators(t)
	folder, url := filepath.Join(t.TempDir(), "client"), serve(t)
	if err := os.CopyFS(folder, os.DirFS("testdata/goclient")); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/client"},
		{"run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.1", "-package", "main",
			"-generate", "types,client", "-o", "client.go", "openapi.json"},
		{"mod", "tidy"},
		{"run", ".", url},
	} {
		if out, err := run(t, folder, "go", args...); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}

// TestLintersFindNothing lints the description of the API by rules for all such documents.
func TestLintersFindNothing(t *testing.T) {
	needsGenerators(t)
	document, err := filepath.Abs("testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	rules := filepath.Join(folder, "rules.json")
	if err := os.WriteFile(rules, []byte(`{"extends": ["spectral:oas"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"@stoplight/spectral-cli@6.15.0", "spectral", "lint", "--fail-severity", "hint", "--ruleset", rules, document},
		{"@redocly/cli@1.34.5", "redocly", "lint", document},
	} {
		if out, err := run(t, folder, "npx", append([]string{"--yes", "--package"}, command...)...); err != nil {
			t.Errorf("%s: %v\n%s", command[1], err, out)
		}
	}
}

func run(t *testing.T, folder, program string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.WaitDelay = folder, time.Second
	return command.CombinedOutput()
}
