package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"

	signatureVersion = "v1,"

	secretPrefix = "whsec_"
	minSecret    = 24 // bytes; the range is the specification's
	maxSecret    = 64
)

// Secret signs calls. Printing it shows a mask; [Secret.Reveal] returns its text. The zero value signs nothing.
type Secret struct {
	// A function, because fmt prints the unexported fields of others without asking their methods, and follows pointers
	// there when the verb does not fit.
	key func() []byte
}

func newSecret(key []byte) Secret { return Secret{func() []byte { return key }} }

// ParseSecret reads "whsec_" and the standard base64 of 24–64 bytes. It returns [ErrInvalidSecret], which never holds
// the text.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return Secret{}, ErrInvalidSecret
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < minSecret || len(key) > maxSecret || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, ErrInvalidSecret
	}
	return newSecret(key), nil
}

// NewSecret draws a secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: the program ends instead
	return newSecret(key)
}

// Reveal returns the text that [ParseSecret] reads, to be given to the receiver. The zero Secret's is "".
func (s Secret) Reveal() string {
	if s.key == nil {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(s.key())
}

// Format prints a mask, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(secretPrefix + "***")) }

// sum is the signature of a body behind its head, the id and the timestamp.
func (s Secret) sum(head string, body []byte) []byte {
	mac := hmac.New(sha256.New, s.key())
	mac.Write([]byte(head))
	mac.Write(body)
	return mac.Sum(nil)
}

// sign sets the three headers of the specification. Several secrets make several signatures, so that a receiver can go
// from one to the next without losing a call.
func sign(header http.Header, id int64, at time.Time, body []byte, secrets []Secret) {
	name, timestamp := strconv.FormatInt(id, 10), strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, secret := range secrets {
		if secret.key == nil {
			continue
		}
		sum := secret.sum(name+"."+timestamp+".", body)
		signatures = append(signatures, signatureVersion+base64.StdEncoding.EncodeToString(sum))
	}
	header.Set(headerID, name)
	if len(signatures) > 0 {
		header.Set(headerTimestamp, timestamp)
		header.Set(headerSignature, strings.Join(signatures, " "))
	}
}

// Errors of [Verify].
var (
	// ErrUnsigned is returned when a call lacks its id, its timestamp or its signature, or one of them is malformed.
	ErrUnsigned = errors.New("webhook: the call is not signed after Standard Webhooks")
	// ErrWrongSignature is returned when no signature of the call was made with one of the secrets.
	ErrWrongSignature = errors.New("webhook: the signature was not made with the secret of this receiver")
	// ErrTooOld is returned when the call was signed longer ago than the window, or further in the future.
	ErrTooOld = errors.New("webhook: the call was signed outside of the window; compare the clocks of both machines")
)

// Verify returns nil when one of the secrets has signed the call: its id, its timestamp and its body. The timestamp may
// differ from now by the window. Verify returns [ErrUnsigned], [ErrWrongSignature], or [ErrTooOld] of a call that is
// signed well.
//
// The other headers of a call, such as Delaytask-Tag, are not signed. Use https where they could be changed on the way.
func Verify(header http.Header, body []byte, now time.Time, window time.Duration, secrets ...Secret) error {
	id, stamp := header.Get(headerID), header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" || header.Get(headerSignature) == "" {
		return ErrUnsigned
	}
	if !signed(header.Values(headerSignature), id+"."+stamp+".", body, secrets) {
		return ErrWrongSignature
	}
	if at := time.Unix(seconds, 0); at.Before(now.Add(-window)) || at.After(now.Add(window)) {
		return ErrTooOld
	}
	return nil
}

// signed reports whether one of the signatures was made with one of the secrets. It skips other versions.
func signed(signatures []string, head string, body []byte, secrets []Secret) bool {
	for _, text := range strings.Fields(strings.Join(signatures, " ")) {
		encoded, known := strings.CutPrefix(text, signatureVersion)
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if !known || err != nil {
			continue
		}
		for _, secret := range secrets {
			if secret.key != nil && hmac.Equal(sum, secret.sum(head, body)) {
				return true
			}
		}
	}
	return false
}
