package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// patience is how long a test waits for what must happen in the end, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// quiet names the queries whose values are zero until something fails, with the reason. They return data all the same.
var quiet = map[string]string{
	"Clock held A":                             "the database's time is known",
	"Database errors A":                        "the database answers",
	"Tasks through the system F":               "no process dies",
	"Quarantined tasks A":                      "no process dies",
	"Processors that ignore their context A":   "each call of a receiver ends",
	"Leases ended by a rescue A":               "no process dies",
	"Clock held by process A":                  "the database's time is known",
	"Machine's clock against the database's A": "the clock of SQLite is the machine's",
	"Errors by class A":                        "the database answers",
	"Past the retention by status A":           "rows are deleted in time",
}

// TestDashboardAndAlertsOnAPrometheus asks a Prometheus that scrapes a service under a small load.
func TestDashboardAndAlertsOnAPrometheus(t *testing.T) {
	d, panels := loadDashboard(t)
	queries, unknown := map[string]string{}, maps.Clone(quiet)
	for _, panel := range panels {
		for _, target := range targets(panel) {
			name := *panel.Title + " " + *target.RefId
			queries[name] = target.Expr
			delete(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("no query is called %v", unknown)
	}
	labels := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range d.Templating.List[1:] {
		parts := labels.FindStringSubmatch(*v.Definition)
		if asked := v.Query.Map["query"]; parts == nil || asked != *v.Definition {
			t.Fatalf("the variable %s asks %v, its definition is %s", v.Name, asked, *v.Definition)
		}
		queries["variable "+v.Name] = fmt.Sprintf(`count by (%s) (%s) and on (%[1]s) (%[2]s)`, parts[2], parts[1])
	}
	for _, alert := range loadRules(t) {
		for _, series := range regexp.MustCompile(`delaytask_\w+`).FindAllString(alert.Expr, -1) {
			queries["alert "+alert.Alert+" "+series] = fmt.Sprintf("count(%s)", series)
		}
	}

	server := scrape(t)
	server.ask(t, *d.Annotations.List[1].Expr) // it returns what fires, which is nothing yet
	missing := slices.Sorted(maps.Keys(queries))
	within(t, func() bool {
		missing = slices.DeleteFunc(missing, func(name string) bool {
			values := server.ask(t, queries[name])
			return slices.ContainsFunc(values, func(v float64) bool {
				return v > 0 || v < 0 || quiet[name] != "" && v == 0 // and no NaN
			})
		})
		return len(missing) == 0
	}, func() {
		for _, name := range missing {
			t.Errorf("%s has no data: %s", name, queries[name])
		}
	})
	server.checkRules(t)
}

// prometheusServer is a Prometheus under test.
type prometheusServer struct{ url string }

// scrape starts a service under a small load, and a Prometheus that scrapes it and evaluates the alerts. It skips the
// test where Debian's package prometheus is not installed.
func scrape(t *testing.T) prometheusServer {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	switch {
	case err == nil:
	case os.Getenv("DELAYTASK_REQUIRE_PROMETHEUS") != "":
		t.Fatalf("DELAYTASK_REQUIRE_PROMETHEUS is set, and Debian's package prometheus is not installed: %v", err)
	default:
		t.Skipf("Debian's package prometheus is not installed: %v", err)
	}
	service := serveUnderLoad(t)
	dir, address := t.TempDir(), freeAddress(t)
	rules, err := filepath.Abs(rulesFile)
	servertest.OK(t, err)
	config := filepath.Join(dir, "prometheus.yml")
	servertest.OK(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [%q]\nscrape_configs: [{job_name: delaytask, static_configs: [{targets: [%q]}]}]\n",
		rules, service), 0o600))
	p := servertest.Launch(t, exec.Command(path, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn"))
	t.Cleanup(func() { p.Stops() })
	p.Answers("http://" + address + "/-/ready")
	return prometheusServer{"http://" + address + "/api/v1/"}
}

// serveUnderLoad returns the address of a service whose tasks complete, fail, are popped, run on, and wait for a
// process, and whose schedules run and fail.
func serveUnderLoad(t *testing.T) (address string) {
	t.Helper()
	receivers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then a call that is given up ends the context
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/long":
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
		}
	}))
	t.Cleanup(receivers.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	servertest.OK(t, os.WriteFile(config, fmt.Appendf(nil, `
dsn: "sqlite:%s/delaytask.db"
migrate: true
stop_grace: 1s
backoff: {base: 100ms}
retention: {completed: 1s}
tags:
  broken: {max_attempts: 2}
receivers:
  mail: {url: %[2]s/mail}
  broken: {url: %[2]s/broken}
  long: {url: %[2]s/long}
`, dir, receivers.URL), 0o600))
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(servertest.Build(t, "./cmd/delaytask"), append(args, "--config", config)...)
		cmd.Dir = dir
		return cmd
	}
	for _, args := range [][]string{
		{"save", "long"}, {"save", "unserved"}, {"save", "mail", "--delay", "30m"},
		{"schedule", "create", "sends", "@every 1s", "--tag", "mail"},
		{"schedule", "create", "fails", "@every 1s", "--tag", "broken"},
	} {
		if out, err := run(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	address = freeAddress(t)
	serve := servertest.Launch(t, run("serve", "--server-listen", address))
	t.Cleanup(func() { serve.Stops() })
	serve.Answers("http://" + address + "/readyz")

	loaded := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { loaded <- work(ctx, "http://"+address+"/v1/") }()
	t.Cleanup(func() { // before the service stops
		end()
		if err := <-loaded; err != nil && ctx.Err() == nil {
			t.Errorf("the load: %v", err)
		}
	})
	return address
}

// work saves some tasks a second and finishes those that are popped, until ctx ends.
func work(ctx context.Context, api string) error {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	call := func(path, body string, answer any) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, api+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("%s %s: %s", path, body, res.Status)
		}
		if res.StatusCode == http.StatusNoContent || answer == nil {
			return nil
		}
		return json.NewDecoder(res.Body).Decode(answer)
	}
	for {
		for _, tag := range []string{"mail", "broken", "pulled"} {
			if err := call("tasks", fmt.Sprintf(`{"tag":%q}`, tag), nil); err != nil {
				return err
			}
		}
		var popped struct{ Tasks []struct{ Token string } }
		if err := call("tags/pulled/pop?max=10", "", &popped); err != nil {
			return err
		}
		for _, task := range popped.Tasks {
			if err := call("tasks/finish", fmt.Sprintf(`{"tokens":[%q]}`, task.Token), nil); err != nil {
				return err
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ask evaluates a query as Grafana sends it when all of an application is shown.
func (s prometheusServer) ask(t *testing.T, query string) (values []float64) {
	t.Helper()
	for name, value := range map[string]string{"job": ".+", "instance": ".+", "tag": ".+", "__rate_interval": "30s"} {
		query = strings.ReplaceAll(query, "$"+name, value)
	}
	var found struct {
		Result []struct{ Value [2]any }
	}
	s.get(t, "query?query="+url.QueryEscape(query), &found)
	for _, sample := range found.Result {
		value, err := strconv.ParseFloat(sample.Value[1].(string), 64)
		servertest.OK(t, err)
		values = append(values, value)
	}
	return values
}

func (s prometheusServer) checkRules(t *testing.T) {
	t.Helper()
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	s.get(t, "rules", &found)
	n := 0
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			n++
			if rule.Health != "ok" {
				t.Errorf("the alert %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if n != len(loadRules(t)) {
		t.Errorf("%d alerts are evaluated", n)
	}
}

func (s prometheusServer) get(t *testing.T, path string, data any) {
	t.Helper()
	res, err := http.Get(s.url + path)
	servertest.OK(t, err)
	defer res.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	servertest.OK(t, json.NewDecoder(res.Body).Decode(&answer))
	if answer.Status != "success" {
		t.Fatalf("%s: %s", path, answer.Error)
	}
}

// within waits until something holds, or calls otherwise.
func within(t *testing.T, holds func() bool, otherwise func()) {
	t.Helper()
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	given := time.After(patience)
	for !holds() {
		select {
		case <-given:
			otherwise()
			return
		case <-every.C:
		}
	}
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	servertest.OK(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
