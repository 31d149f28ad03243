// Package golden holds what users, dashboards and log searches rely on: the public declarations, the log messages, the
// description of the API and the names of the metrics. DELAYTASK_UPDATE=1 writes the files anew.
package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
	"github.com/delaytask/delaytask/processor"
)

func TestDescriptionOfTheAPI(t *testing.T) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, get(t, serve(t)+"/openapi.json"), "", " "); err != nil {
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
	var all []string
	for series := range strings.Lines(string(get(t, url+"/metrics"))) {
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

// workOnce saves a task that is done and one that fails, so that their series are there.
func workOnce(t *testing.T, url string) {
	t.Helper()
	tasks, err := client.New(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(*processor.Popped) error{
		func(p *processor.Popped) error { return p.Fail(t.Context(), errors.New("broken")) },
		func(p *processor.Popped) error { return p.Finish(t.Context()) },
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

func get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return body
}

func TestMain(m *testing.M) { dbtest.Main(m) }
