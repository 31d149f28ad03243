// Package browser tests the dashboard in a real browser: how it looks, who can use it, and what it does beside a
// database that comes and goes.
package browser

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// browser is the context of the only browser. It is nil on a machine without one.
var browser context.Context

func TestMain(m *testing.M) {
	code, err := begin(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func begin(m *testing.M) (int, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return servertest.Built{Tests: m}.Run(), nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // which root has not; every page is one of these tests
		chromedp.DisableGPU,
		chromedp.Flag("hide-scrollbars", true),
		// No test goes back, so the browser need not keep old pages, nor start processes for what may come.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,BackForwardCache,"+
			"ProactivelySwapBrowsingInstance,SpareRendererForSitePerProcess,RenderDocument"),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	browser = ctx
	code := servertest.Built{Tests: m}.Run()
	return code, chromedp.Cancel(ctx)
}

// missing skips a test, or fails where the machine must have everything.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("DELAYTASK_REQUIRE_BROWSER") != "" {
		t.Fatalf("DELAYTASK_REQUIRE_BROWSER is set, and "+format, args...)
	}
	t.Skipf(format, args...)
}

// quiet is a log for what is expected to go wrong.
var quiet = slog.New(slog.DiscardHandler)

// npm returns a folder with a package whose archive has the hash, as npm writes it. Archives are kept in the cache of
// the user.
func npm(t *testing.T, name, integrity string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	servertest.OK(t, err)
	cache = filepath.Join(cache, "delaytask-browser")
	servertest.OK(t, os.MkdirAll(cache, 0o755))
	archive := filepath.Join(cache, strings.ReplaceAll(name, "@", "-")+".tgz")
	if hash(archive) != integrity {
		pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--fetch-retries=1", name)
		pack.Dir = cache
		if out, err := pack.CombinedOutput(); err != nil {
			missing(t, "npm cannot fetch %s: %v\n%s", name, err, out)
		}
		if got := hash(archive); got != integrity {
			t.Fatalf("the archive of %s has the hash %s, want %s", name, got, integrity)
		}
	}
	folder := t.TempDir()
	servertest.OK(t, exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", folder).Run())
	return filepath.Join(folder, "package")
}

func hash(file string) string {
	content, _ := os.ReadFile(file) // what is not there has another hash
	sum := sha512.Sum512(content)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}
