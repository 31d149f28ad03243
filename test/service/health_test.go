package service

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestHealthAsksTheServiceThatIsMeant(t *testing.T) {
	t.Parallel()
	s := serve(t, dbtest.New(t, dbtest.SQLite))
	here, nowhere := strings.TrimPrefix(s.URL, "http://"), "127.0.0.1:1"
	f := func(code int, want, listen, address string, args ...string) {
		t.Helper()
		env := []string{"DELAYTASK_SERVER_LISTEN=" + listen, "DELAYTASK_URL=" + address}
		out, errs, got := run(t, env, append([]string{"health"}, args...)...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("at %s, URL %s, %v: exit code %d, %s%s", listen, address, args, got, out, errs)
		}
	}
	f(0, s.URL+": ready\n", here, "")
	f(0, s.URL+": ok\n", here, "", "--live")
	f(0, `"state": "ready"`, nowhere, s.URL, "--json")
	f(0, "ready", nowhere, "http://"+nowhere, "--url", s.URL+"/")
	f(0, "ready", nowhere, "", "--server-listen", here)
	f(0, "ready", ":"+here[strings.LastIndex(here, ":")+1:], "")
	f(1, "does not answer as it should", here, "http://"+nowhere)
	f(1, `"code":"unavailable"`, nowhere, "", "--json")
	f(2, "a port that is not 0", "127.0.0.1:0", "")
	f(2, "http:// or https://", here, "ftp://h")
	s.Kill()
	f(1, "connection refused", here, "")
}

func TestReadyServiceWarnsThatPlainInsertsAreLate(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db)
	if text := s.Call("GET", "/readyz", "").Text; text != "ready\n" {
		t.Errorf("before: %q", text)
	}
	servertest.Exec(t, db.DSN,
		"INSERT INTO delay_task_message (id, tag, message_body) VALUES (9223372036854775807, 't', '')")
	warning := regexp.MustCompile(`^ready\nwarning: .*: UPDATE sqlite_sequence SET .*\n$`)
	servertest.Eventually(t, "it warns", func() bool {
		return warning.MatchString(s.Call("GET", "/readyz", "").Text)
	})
	for _, json := range []string{"--json=false", "--json"} {
		out, errs, code := run(t, []string{"DELAYTASK_URL=" + s.URL}, "health", json)
		if code != 0 || !strings.Contains(out, "ready") || !strings.Contains(out+errs, "UPDATE sqlite_sequence SET") {
			t.Errorf("health %s: exit code %d, %s%s", json, code, out, errs)
		}
	}
}

func TestHealthTrustsItsOwnServerAlone(t *testing.T) {
	t.Parallel()
	f := func(status int, body, want string) {
		t.Helper()
		other := servertest.Listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		if out, errs, code := run(t, nil, "health", "--json", "--url", other); code != 1 ||
			!strings.Contains(errs, want) {
			t.Errorf("%d %s: exit code %d, %s%s", status, body, code, out, errs)
		}
	}
	f(503, `{"status":503,"code":"stopping","detail":"the service is stopping"}`, `"code":"stopping"`)
	f(200, "<html>welcome", `"code":"unavailable"`)
	f(302, "ready", "302")
}

func TestHealthKnowsTheCertificateOfTheService(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	otherCert, otherKey, _ := certificate(t)
	tls := func(cert, key string) []string {
		return []string{"DELAYTASK_SERVER_TLS_CERT=" + cert, "DELAYTASK_SERVER_TLS_KEY=" + key}
	}
	s := serve(t, dbtest.New(t, dbtest.SQLite), append(tls(cert, key), "DELAYTASK_SERVER_TLS_CLIENT_CA="+cert)...)
	listen := "DELAYTASK_SERVER_LISTEN=" + strings.TrimPrefix(s.URL, "https://")
	if out, errs, code := run(t, append(tls(cert, key), listen), "health"); code != 0 {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	_, errs, code := run(t, append(tls(otherCert, otherKey), listen), "health")
	if code != 1 || !strings.Contains(errs, "differs from server.tls.cert") {
		t.Errorf("another certificate: exit code %d, %s", code, errs)
	}
}
