package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestACollectorThatCannotTakeSpansNowIsAskedAgain has the time of a bubble, so that waits are exact.
func TestACollectorThatCannotTakeSpansNowIsAskedAgain(t *testing.T) {
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of the collector's clock
	f := func(name string, answers []*http.Response, wantTries int, least, most time.Duration, wantErr string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := exporter(t, nil)
				defer e.Close(t.Context())
				tries := 0
				e.client.transport = roundTrip(func(*http.Request) (*http.Response, error) {
					tries++
					if answer := answers[min(tries, len(answers))-1]; answer != nil {
						return answer, nil
					}
					return nil, errors.New("connection refused")
				})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				err := e.client.UploadTraces(ctx, nil)
				took := time.Since(began)
				if tries != wantTries || took < least || took > most {
					t.Errorf("%d tries in %v", tries, took)
				}
				if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
					t.Errorf("got %v, want %q", err, wantErr)
				}
				if err != nil && strings.Contains(err.Error(), "canary") {
					t.Errorf("the error quotes the answer: %v", err)
				}
			})
		})
	}
	ok := answered(200)
	for _, status := range []int{429, 502, 503, 504} {
		f(http.StatusText(status), []*http.Response{answered(status), ok}, 2, 800*time.Millisecond, 1200*time.Millisecond, "")
	}
	f("seconds", []*http.Response{answered(429, "Retry-After", "7"), ok}, 2, 7*time.Second, 7*time.Second, "")
	f("a date", []*http.Response{answered(503, "Retry-After", date.Add(9*time.Second).Format(http.TimeFormat),
		"Date", date.Format(http.TimeFormat)), ok}, 2, 9*time.Second, 9*time.Second, "")
	f("sooner than the backoff", []*http.Response{answered(503, "Retry-After", "0"), ok}, 2, 800*time.Millisecond, 1200*time.Millisecond, "")
	f("later than there is time", []*http.Response{answered(503, "Retry-After", "31")}, 1, 0, 0, "answers 503")
	f("much later", []*http.Response{answered(503, "Retry-After", "18446744073709551615")}, 1, 0, 0, "answers 503")
	f("for ever", []*http.Response{answered(503)}, mostTries, 12*time.Second, 18*time.Second, "answers 503")
	f("another failure", []*http.Response{answered(400)}, 1, 0, 0, "answers 400")
	f("a redirect", []*http.Response{answered(307, "Location", "http://elsewhere")}, 1, 0, 0, "answers 307")
	f("not there", []*http.Response{nil}, 1, 0, 0, "connection refused")
}

func TestARequestThatTakesTooLongEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := exporter(t, variables{"OTEL_EXPORTER_OTLP_TIMEOUT": "1500"})
		defer e.Close(t.Context())
		e.client.transport = roundTrip(hang)
		began := time.Now()
		err := e.client.UploadTraces(t.Context(), nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
