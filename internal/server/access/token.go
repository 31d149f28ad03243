package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// A token begins so that people and scanners for leaked secrets know what it is.
const tokenPrefix = "dt_"

const tokenBytes = 32

// New makes a token. The secret is what a caller sends; it cannot be had again from the row that is stored. tags and
// verbs are as [ParseTags] and [ParseVerbs] take them; the token is good until expires by the database's clock, and for
// ever when that is zero. New returns [ErrInvalid] when the name, a tag or a verb makes no sense.
func New(name string, tags []string, verbs []Verb, expires row.Time) (secret string, token row.AccessToken, err error) {
	if !processor.ValidTag(name) {
		return "", token, fmt.Errorf("%w: the name %.140q of a token: want 1-128 bytes of A-Z a-z 0-9 . _ - : /", ErrInvalid, name)
	}
	if tags, err = ParseTags(tags); err != nil {
		return "", token, err
	}
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = string(v)
	}
	if _, err := ParseVerbs(names); err != nil {
		return "", token, err
	}
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, row.AccessToken{
		Name: name, Hash: sha256.Sum256([]byte(secret)), Tags: tags, Verbs: names, Expires: expires,
	}, nil
}

// hashOf returns the hash of what may be a token. What cannot be one is refused without further work, however long it
// is.
func hashOf(bearer string) (hash [sha256.Size]byte, ok bool) {
	random, named := strings.CutPrefix(bearer, tokenPrefix)
	if !named || len(random) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return hash, false
	}
	return sha256.Sum256([]byte(bearer)), true
}
