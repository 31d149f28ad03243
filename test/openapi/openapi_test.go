// Package openapi generates a client from the document of a running service, with a generator that knows nothing of
// delaytask, and lets it save and pop tasks.
package openapi

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// required turns the reasons to skip into failures, for a machine that must have Node and a way to npm's registry.
var required = os.Getenv("DELAYTASK_REQUIRE_NODE") != ""

func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if required {
		t.Fatalf("DELAYTASK_REQUIRE_NODE is set, and "+format, args...)
	}
	t.Skipf(format, args...)
}

func TestAGeneratedClientSavesAndPops(t *testing.T) {
	if testing.Short() {
		t.Skip("installs packages from npm")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "there is no %s here", program)
		}
	}
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json", "client.ts"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"); err != nil {
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

func run(t *testing.T, folder, program string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.WaitDelay = folder, time.Second
	return command.CombinedOutput()
}

// serve runs a service on an embedded database, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = dbtest.New(t, dbtest.SQLite).DSN, true, "127.0.0.1:0"
	s, err := server.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}
