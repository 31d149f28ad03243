package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func TestReferenceLibraryAcceptsEachSignature(t *testing.T) {
	t.Parallel()
	old, fresh, other := NewSecret(), NewSecret(), NewSecret()
	const body = `{"order":"ä"}`
	verified := make(chan error, 3)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range []Secret{old, fresh, other} {
			receiver, err := standardwebhooks.NewWebhook(secret.Reveal())
			if err != nil {
				t.Error(err)
				continue
			}
			verified <- receiver.Verify(got, r.Header)
		}
		if id := r.Header.Get("webhook-id"); id != "42" {
			t.Errorf("webhook-id %q", id)
		}
	})
	call := Call{URL: server.URL, Body: []byte(body), Secrets: []Secret{old, fresh, {}}}
	if _, err := newClient(t, nil).Deliver(t.Context(), someTask(), call); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "fresh"} {
		if err := <-verified; err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
	}
	if err := <-verified; err == nil {
		t.Error("a secret that did not sign is accepted")
	}
}

func TestSecretIsParsedStrictly(t *testing.T) {
	t.Parallel()
	encode := base64.StdEncoding.EncodeToString
	for _, size := range []int{24, 32, 64} {
		text := secretPrefix + encode(make([]byte, size))
		if secret, err := ParseSecret(text); err != nil || secret.Reveal() != text {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	canary := strings.Repeat("canary", 5)
	for _, text := range []string{
		"", "whsec_", canary, secretPrefix + canary + "!", encode([]byte(canary)), "WHSEC_" + encode([]byte(canary)),
		secretPrefix + encode(make([]byte, 23)), secretPrefix + encode(make([]byte, 65)),
		secretPrefix + encode([]byte(canary)) + "\n",
		secretPrefix + base64.RawStdEncoding.EncodeToString(make([]byte, 25)),
	} {
		if _, err := ParseSecret(text); !errors.Is(err, ErrInvalidSecret) {
			t.Errorf("%q: got %v, want ErrInvalidSecret", text, err)
		} else if err.Error() != ErrInvalidSecret.Error() {
			t.Errorf("the error shows more than it must: %v", err)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	hidden := struct{ secret Secret }{secret}
	asJSON, err := json.Marshal(Call{Secrets: []Secret{secret}})
	mustOK(t, err)
	printed := string(asJSON)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb, secret) + fmt.Sprintf(verb, hidden) + fmt.Sprintf(verb, &hidden)
	}
	key := secret.key()
	for _, canary := range []string{secret.Reveal()[len(secretPrefix):], string(key), fmt.Sprintf("%x", key),
		strings.Trim(fmt.Sprintf("%v", key), "[]"),
		strings.ReplaceAll(strings.Trim(fmt.Sprintf("%#v", key), "[]byte{}"), "0x", "")} {
		if strings.Contains(printed, canary) {
			t.Errorf("%s shows the secret", printed)
		}
	}
}
