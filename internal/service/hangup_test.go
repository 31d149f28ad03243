package service

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestACallerWhoHangsUpIsNoFailure lets one hang up while it waits, as every long poll may.
func TestACallerWhoHangsUpIsNoFailure(t *testing.T) {
	r := serve(t, settings(sqlite(t)))
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL()+"/v1/tags/t/pop?wait=50s", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("it was answered %d", res.StatusCode)
		}
	}()
	awaitServed(t, r, "t")
	hangUp()
	<-gone
	const counted = `delaytask_http_requests_total{method="POST",route="/v1/tags/{tag}/pop",status="499"} 1`
	for deadline := time.Now().Add(time.Minute); ; {
		if _, metrics := r.call(t, "GET", "/metrics", "", nil); strings.Contains(metrics, counted) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it was not counted: %s", r.logged)
		}
	}
	for _, word := range []string{"level=ERROR", "level=WARN"} {
		if strings.Contains(r.logged.String(), word) {
			t.Errorf("it is logged as a failure: %s", r.logged)
		}
	}
}
