package otlp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestSpansReachTheCollector(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		t.Run(compression, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, c := exporter(t, variables{
					"OTEL_EXPORTER_OTLP_ENDPOINT":    "http://collector:4318/base",
					"OTEL_EXPORTER_OTLP_HEADERS":     "api-key=a%2Cb%3D, X-Tenant = seven",
					"OTEL_EXPORTER_OTLP_COMPRESSION": compression,
				})
				var got *tracepb.TracesData
				var header http.Header
				e.courier.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method != "POST" || r.URL.String() != "http://collector:4318/base/v1/traces" {
						t.Errorf("%s %s", r.Method, r.URL)
					}
					got, header = read(t, r), r.Header
					return answered(200), nil
				})
				e.spans(t, 3)
				e.Close(t.Context())
				if len(got.GetResourceSpans()) != 1 || len(got.ResourceSpans[0].ScopeSpans[0].Spans) != 3 {
					t.Fatalf("got %v", got)
				}
				attributes := map[string]string{}
				for _, a := range got.ResourceSpans[0].Resource.Attributes {
					attributes[a.Key] = a.Value.GetStringValue()
				}
				if attributes["service.name"] != "delaytask" || attributes["service.version"] != "v1" ||
					attributes["telemetry.sdk.language"] != "go" {
					t.Errorf("the resource is %v", attributes)
				}
				for name, want := range map[string]string{
					"Content-Type": "application/x-protobuf", "Api-Key": "a,b=", "X-Tenant": "seven",
				} {
					if header.Get(name) != want {
						t.Errorf("%s is %q", name, header.Get(name))
					}
				}
				if c.of(Sent) != 3 || c.of(Overflow)+c.of(Failed) != 0 {
					t.Errorf("counted %v", c.spans)
				}
			})
		})
	}
}

func TestAFullQueueDropsAndNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := exporter(t, variables{"OTEL_BSP_MAX_QUEUE_SIZE": "5"})
		var answers atomic.Bool
		e.courier.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if !answers.Load() {
				return hang(r)
			}
			return answered(200), nil
		})
		began := time.Now()
		e.spans(t, 12)
		if c.of(Overflow) != 7 || time.Since(began) != 0 {
			t.Errorf("counted %v after %v", c.spans, time.Since(began))
		}
		time.Sleep(sdktrace.DefaultScheduleDelay*time.Millisecond + defaultTimeout + time.Second)
		answers.Store(true)
		if c.of(Failed) != 5 {
			t.Errorf("counted %v", c.spans)
		}
		e.spans(t, 5)
		e.Close(t.Context())
		if c.of(Sent) != 5 || c.of(Overflow) != 7 {
			t.Errorf("there was no room again: %v", c.spans)
		}
	})
}

func TestAMissingCollectorIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, c := exporter(t, nil)
		e.courier.transport = roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection refused")
		})
		for range 100 {
			e.spans(t, 1)
			time.Sleep(6 * time.Second)
		}
		e.Close(t.Context())
		if c.of(Failed) != 100 {
			t.Errorf("counted %v", c.spans)
		}
		lines := c.lines()
		if len(lines) < 9 || len(lines) > 11 {
			t.Errorf("in 10 minutes %d lines: %q", len(lines), lines)
		}
		for _, want := range []string{"level=WARN", "collector=collector:4318", "spans=1 ", "connection refused"} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("%q is missing in %s", want, lines[0])
			}
		}
	})
}

func TestCloseWaitsFiveSecondsForACollectorThatTakesNothing(t *testing.T) {
	refuse := func(*http.Request) (*http.Response, error) {
		return answered(503, "Retry-After", "20"), nil
	}
	for name, transport := range map[string]roundTrip{"hangs": hang, "is to be asked again": refuse} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, c := exporter(t, nil)
				e.courier.transport = transport
				e.spans(t, 2000) // several batches
				began := time.Now()
				e.Close(t.Context())
				if time.Since(began) != flushWait || c.of(Failed) != 2000 {
					t.Errorf("it took %v, %v", time.Since(began), c.spans)
				}
				e.Close(t.Context()) // a second time is as good
			})
		})
	}
}

// TestACollectorThatCannotTakeSpansNowIsAskedAgain runs in a bubble, so that waits are exact.
func TestACollectorThatCannotTakeSpansNowIsAskedAgain(t *testing.T) {
	f := func(name string, transport roundTrip, result string, tries int, least, most time.Duration, why string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, c := exporter(t, variables{
					"OTEL_EXPORTER_OTLP_TIMEOUT":         "1500",
					"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector/canary",
				})
				tried := 0
				e.courier.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					if tried++; tried > tries {
						return answered(200), nil
					}
					return transport(r)
				})
				// As the SDK does.
				ctx, cancel := context.WithTimeout(t.Context(), sdktrace.DefaultExportTimeout*time.Millisecond)
				defer cancel()
				began := time.Now()
				servertest.OK(t, (settling{e}).ExportSpans(ctx, tracetest.SpanStubs{{}}.Snapshots()))
				if took := time.Since(began); c.of(result) != 1 || took < least || took > most {
					t.Errorf("counted %v after %v and %d tries", c.spans, took, tried)
				}
				e.Close(t.Context())
				if logged := c.logged.String(); !strings.Contains(logged, why) || strings.Contains(logged, "canary") {
					t.Errorf("it logs %s", logged)
				}
			})
		})
	}
	answer := func(status int, headers ...string) roundTrip {
		return func(*http.Request) (*http.Response, error) { return answered(status, headers...), nil }
	}
	for _, status := range []int{429, 502, 503, 504} {
		f(http.StatusText(status), answer(status), Sent, 1, 2*time.Second, 8*time.Second, "")
	}
	// The exporter's own first wait is up to 7.5 s, and the longer one counts.
	f("seconds", answer(429, "Retry-After", "8"), Sent, 1, 8*time.Second, 8*time.Second, "")
	date := time.Date(2000, 1, 1, 0, 0, 9, 0, time.UTC) // where the time of a bubble begins at 0
	f("a date", answer(503, "Retry-After", date.Format(http.TimeFormat)), Sent, 1, 9*time.Second, 9*time.Second, "")
	f("later than there is time", answer(503, "Retry-After", "31"), Failed, 1, 30*time.Second, 30*time.Second,
		"answers 503")
	f("for ever", answer(503), Failed, 99, 30*time.Second, 30*time.Second, "answers 503")
	f("another failure", answer(400), Failed, 1, 0, 0, "answers 400")
	f("a redirect", answer(307, "Location", "http://elsewhere"), Failed, 1, 0, 0, "answers 307")
	f("not there", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		Failed, 1, 0, 0, "connection refused")
	f("no answer in time", hang, Failed, 1, 1500*time.Millisecond, 1500*time.Millisecond, "deadline exceeded")
}

func TestWhatTheSDKCannotUseIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"OTEL_RESOURCE_ATTRIBUTES":          {"nothing", "OTEL_RESOURCE_ATTRIBUTES"},
		"OTEL_EXPORTER_OTLP_HEADERS":        {"a=b,canary", "parse headers"},
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": {"a b=canary", "parse headers"},
		"OTEL_TRACES_SAMPLER":               {"jaeger_remote", "unsupported sampler: jaeger_remote"},
		"OTEL_TRACES_SAMPLER_ARG":           {"1.5", "greater than 1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			t.Setenv(name, c.value)
			to, err := FromEnv(variables{"OTEL_TRACES_EXPORTER": "otlp"}.get)
			servertest.OK(t, err)
			_, err = New(t.Context(), Config{
				Settings: to, Service: "delaytask", Log: slog.New(slog.DiscardHandler),
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSpansAreSentWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := exporter(t, nil)
		var got *tracepb.TracesData
		e.courier.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			got = read(t, r)
			return answered(200), nil
		})
		_, span := e.Provider().Tracer("test").Start(t.Context(), "span",
			trace.WithAttributes(attribute.String("a", "secret"), attribute.Int("n", 1)))
		span.RecordError(errors.New("secret"))
		span.SetStatus(codes.Error, "secret")
		span.End()
		e.Close(t.Context())
		if text := got.String(); strings.Contains(text, "secret") || strings.Count(text, "mask") != 3 {
			t.Errorf("sent %s", text)
		}
	})
}
