// Package golden holds what users, dashboards and log searches rely on: the public declarations, the log messages, the
// description of the API and the names of the metrics. DELAYTASK_UPDATE=1 writes the files anew.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestDescriptionOfTheAPI(t *testing.T) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(get(t, serve(t), "/openapi.json")), "", " "); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/openapi.json", indented.String())
}

// value is the number at the end of a series, and quoted the value of a label. Bounds of buckets are kept.
var (
	value  = regexp.MustCompile(` [-+0-9.eNaInf]+$`)
	quoted = regexp.MustCompile(`([a-z_]*)="[^"]*"`)
)

func TestNamesOfTheMetrics(t *testing.T) {
	url := serve(t)
	workOnce(t, url)
	servertest.Eventually(t, "the table has been read", func() bool {
		return strings.Contains(get(t, url, "/metrics"), "delaytask_purge_lag_seconds{")
	})
	var all []string
	for series := range strings.Lines(get(t, url, "/metrics")) {
		if !strings.Contains(series, "delaytask_") {
			continue // of the Go runtime and the process
		}
		if series = strings.TrimSuffix(series, "\n"); !strings.HasPrefix(series, "#") {
			series = quoted.ReplaceAllStringFunc(value.ReplaceAllString(series, ""), func(label string) string {
				if strings.HasPrefix(label, "le=") {
					return label
				}
				name, _, _ := strings.Cut(label, "=")
				return name
			})
		}
		all = append(all, series)
	}
	slices.Sort(all)
	golden.Check(t, "testdata/metrics.txt", strings.Join(slices.Compact(all), "\n")+"\n")
}

// workOnce saves a task that is done, one that fails and one that a processor runs, so that their series are there.
func workOnce(t *testing.T, url string) {
	t.Helper()
	tasks, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(*delaytask.Popped) error{
		func(p *delaytask.Popped) error { return p.Fail(t.Context(), errors.New("broken")) },
		func(p *delaytask.Popped) error { return p.Finish(t.Context()) },
	} {
		if _, err := tasks.SaveDelayTask(t.Context(), "golden", map[string]int{"order": 42}, 0); err != nil {
			t.Fatal(err)
		}
		popped, err := tasks.Pop(t.Context(), "golden")
		if err != nil {
			t.Fatal(err)
		}
		if err := end(popped[0]); err != nil {
			t.Fatal(err)
		}
	}
	call := map[string]string{"url": url + "/healthz", "method": "get"}
	id, err := tasks.SaveDelayTask(t.Context(), "http", call, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// serve runs a service on SQLite, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = dbtest.New(t, dbtest.SQLite).DSN, true, "127.0.0.1:0"
	s, err := server.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	servertest.Run(t, s)
	return s.URL()
}

func get(t *testing.T, url, path string) string {
	t.Helper()
	c := servertest.Client{TB: t, URL: url}
	return c.Want(http.StatusOK, "", http.MethodGet, path, "").Text
}

func TestMain(m *testing.M) { dbtest.Main(m) }
