package otlp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type variables map[string]string

func (v variables) get(name string) string { return v[name] }

func TestSpansAreSentWhereTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	const all, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	f := func(want string, env variables) {
		t.Helper()
		s, err := FromEnv(env.get)
		got := ""
		if s.to != nil {
			got = s.to.Scheme + "://" + s.to.Host + s.to.RequestURI()
		}
		if err != nil || got != want {
			t.Errorf("%v: %q, %v, want %q", env, got, err, want)
		}
	}
	f("", nil)
	f("", variables{"OTEL_SERVICE_NAME": "shop", "OTEL_EXPORTER_OTLP_HEADERS": "a=b",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
	f("http://c:4318/v1/traces", variables{all: "http://c:4318"})
	f("http://c:4318/v1/traces", variables{all: " http://c:4318/ "})
	f("https://c/otlp/v1/traces", variables{all: "https://c/otlp"})
	f("http://d/", variables{own: "http://d"})
	f("http://d/spans", variables{own: "http://d/spans", all: "http://c:4318"})
	f("http://localhost:4318/v1/traces", variables{"OTEL_TRACES_EXPORTER": "otlp"})
	f("http://c/v1/traces", variables{"OTEL_TRACES_EXPORTER": "otlp", all: "http://c"})
	f("", variables{"OTEL_TRACES_EXPORTER": "none", all: "http://c", own: "http://c"})
	f("", variables{"OTEL_SDK_DISABLED": "True", all: "http://c", "OTEL_TRACES_EXPORTER": "zipkin"})
	f("http://c/v1/traces", variables{"OTEL_SDK_DISABLED": "1", all: "http://c"})
}

func TestHowSpansAreSent(t *testing.T) {
	t.Parallel()
	s, err := FromEnv(variables{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "1500", "OTEL_BSP_MAX_QUEUE_SIZE": "7",
	}.get)
	servertest.OK(t, err)
	if s.timeout != 1500*time.Millisecond || s.queue != 7 || s.Host() != "c:1" {
		t.Errorf("got %v, %d, %s", s.timeout, s.queue, s.Host())
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	noPEM := filepath.Join(t.TempDir(), "empty.pem")
	servertest.OK(t, os.WriteFile(noPEM, nil, 0o600))
	f := func(name, value, want string) {
		t.Helper()
		env := variables{endpoint: "http://c"}
		env[name] = value
		s, err := FromEnv(env.get)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), want) ||
			s.Host() != "" {
			t.Errorf("%s=%s: %v, %v", name, value, s, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error tells a secret: %v", name, err)
		}
	}
	f("OTEL_TRACES_EXPORTER", "zipkin", "otlp alone")
	f("OTEL_TRACES_EXPORTER", "otlp,console", "otlp alone")
	for _, wrong := range []string{"canary:4318", "ftp://canary", "http://", "http://canary:pass@:80",
		"http://c/%zzcanary", ":canary", "http://canary%20b", "http://c:431800"} {
		f(endpoint, wrong, "http://HOST:PORT")
	}
	f("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "canary", "http://HOST:PORT")
	f(endpoint, "https://me:canary@c", "HEADERS")
	f(endpoint, "https://c?key=canary", "HEADERS")
	f("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "whole number")
	f("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "0", "whole number")
	f("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "whole number")
	f("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "4318")
	f("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf")
	f("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "no such file")
	f("OTEL_EXPORTER_OTLP_CERTIFICATE", noPEM, "no certificate")
	f("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", noPEM, "belong together")
	f("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", noPEM, "belong together")
}
