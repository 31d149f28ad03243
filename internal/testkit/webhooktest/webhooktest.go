// Package webhooktest makes clients of webhooks for tests. Its imports are not servertest's: an application's go mod
// tidy looks at the tests of the packages that it imports.
package webhooktest

import (
	"testing"

	"github.com/delaytask/delaytask/processor/webhook"
)

// New returns a client that may call addresses of the test.
func New(t testing.TB, c webhook.Config) *webhook.Client {
	t.Helper()
	var err error
	if c.Guard, err = webhook.NewGuard(webhook.GuardConfig{AllowLoopback: true}); err != nil {
		t.Fatal(err)
	}
	client, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
