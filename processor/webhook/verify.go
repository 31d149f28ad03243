package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why [Verify] does not trust a call.
var (
	// ErrUnsigned is returned when a call lacks its id, its timestamp or its signature, or one of them is malformed.
	ErrUnsigned = errors.New("webhook: the call is not signed after Standard Webhooks")
	// ErrWrongSignature is returned when no signature of the call was made with one of the secrets.
	ErrWrongSignature = errors.New("webhook: the signature was not made with the secret of this receiver")
	// ErrTooOld is returned when the call was signed longer ago, or further in the future, than the window.
	ErrTooOld = errors.New("webhook: the call was signed outside of the window; compare the clocks of both machines")
)

// Verify returns nil when one of the secrets has signed the call: its id, its timestamp and its body. The timestamp may
// differ from now by the window. Verify returns [ErrUnsigned], [ErrWrongSignature], or [ErrTooOld] of a call that is
// signed well.
//
// The other headers of a call, such as Delaytask-Tag, are not signed: take calls by https where others could change
// them.
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

// signed reports whether one of the signatures is that of a secret. Those of other versions are passed over.
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
