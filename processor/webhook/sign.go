package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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

// Secret signs calls. However it is printed, it shows nothing; [Secret.Reveal] does. The zero value signs nothing.
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
