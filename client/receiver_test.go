package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

func TestAReceiverRunsNothingThatItsServiceHasNotSigned(t *testing.T) {
	t.Parallel()
	c, err := New("http://127.0.0.1:1", WithBodyLimit(100))
	mustOK(t, err)
	secret := webhook.NewSecret()
	r, err := c.Receiver("shop", "http://127.0.0.1/", ReceiverSecret(secret.Reveal()),
		ReceiverWindow(time.Minute))
	mustOK(t, err)
	ran := 0
	count := processor.Func(func(_ context.Context, task *delaytask.Task) error {
		ran++
		want := delaytask.ScheduledRun{Name: "daily", Tick: time.Unix(1.8e9, 0).UTC()}
		if s := task.Schedule; s == nil || *s != want {
			t.Errorf("the task is the run %+v of a schedule", s)
		}
		if task.Crashes != 2 {
			t.Errorf("%d crashes", task.Crashes)
		}
		return nil
	})
	mustOK(t, r.Register("t", count))
	without := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	now, wrong := time.Now(), "wrong_signature"
	for name, tt := range map[string]struct {
		change func(call *http.Request)
		by     webhook.Secret
		at     time.Time
		body   string
		status int
		code   string
	}{
		"signed":                  {nil, secret, now, "{}", 204, ""},
		"unsigned":                {without("Webhook-Signature"), secret, now, "{}", 401, "unsigned"},
		"without a time":          {without("Webhook-Timestamp"), secret, now, "{}", 401, "unsigned"},
		"with another secret":     {nil, webhook.NewSecret(), now, "{}", 401, wrong},
		"of another version":      {with("Webhook-Signature", "v1a,x"), secret, now, "{}", 401, wrong},
		"of another task":         {with("Webhook-Id", "8"), secret, now, "{}", 401, wrong},
		"too old":                 {nil, secret, now.Add(-2 * time.Minute), "{}", 401, "too_old"},
		"of the future":           {nil, secret, now.Add(2 * time.Minute), "{}", 401, "too_old"},
		"with a token of another": {with("Delaytask-Token", "8.1"), secret, now, "{}", 400, "invalid_header"},
		"without an attempt":      {without("Delaytask-Attempt"), secret, now, "{}", 400, "invalid_header"},
		"of an unknown tag":       {with("Delaytask-Tag", "u"), secret, now, "{}", 404, "unknown_tag"},
		"too large":               {nil, secret, now, strings.Repeat("x", 101), 413, "body_too_large"},
		"read, not posted": {func(r *http.Request) { r.Method = "GET" }, secret, now, "{}", 405,
			"method_not_allowed"},
	} {
		call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(tt.body))
		stamp := strconv.FormatInt(tt.at.Unix(), 10)
		for name, value := range map[string]string{
			"Webhook-Id": "7", "Webhook-Timestamp": stamp,
			"Webhook-Signature": signature(t, tt.by, "7."+stamp+"."+tt.body),
			"Delaytask-Tag":     "t", "Delaytask-Attempt": "1", "Delaytask-Crashes": "2", "Delaytask-Token": "7.1",
			"Delaytask-Schedule": "daily", "Delaytask-Tick": "2027-01-15T08:00:00Z",
		} {
			call.Header.Set(name, value)
		}
		if tt.change != nil {
			tt.change(call)
		}
		answer := httptest.NewRecorder()
		before := ran
		r.ServeHTTP(answer, call)
		var p wire.Problem
		_ = json.Unmarshal(answer.Body.Bytes(), &p)
		if answer.Code != tt.status || p.Code != tt.code || ran-before != map[bool]int{true: 1}[tt.code == ""] {
			t.Errorf("%s: answered %d %s, and %d tasks ran", name, answer.Code, answer.Body, ran-before)
		}
	}
}

// signature is computed without the code that is tested.
func signature(t *testing.T, secret webhook.Secret, text string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
	mustOK(t, err)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return "v0,AAAA v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
