// Package encrypted encrypts secrets that are kept in a database. They can be read only with the secret of the service,
// DELAYTASK_SECRET, and only in the place for which they were encrypted.
package encrypted

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	// ErrNoSecret is returned when something is to be encrypted or opened and the service has no secret.
	ErrNoSecret = errors.New("DELAYTASK_SECRET is not set: " + wanted)

	// ErrShortSecret is returned when the service's secret is too short.
	ErrShortSecret = errors.New("DELAYTASK_SECRET is too short: " + wanted)

	// ErrNotOpened is returned when something was encrypted with another secret, for another place, or is damaged.
	ErrNotOpened = errors.New("it was encrypted with another DELAYTASK_SECRET, for another place, or is damaged: " +
		"set DELAYTASK_SECRET to what it was, or store the secret anew")
)

const shortest = 16

const wanted = "set it to at least 16 random bytes, such as openssl rand -base64 32 prints"

// version is the first byte of encrypted data. It changes with the method.
const version = 1

// Box seals and opens with one secret. A nil Box has none, and refuses both with [ErrNoSecret]. It may be used by many
// goroutines.
type Box struct{ aead cipher.AEAD }

// New returns a box for the service's secret, whose key is derived by HKDF-SHA256. It returns [ErrNoSecret] for an
// empty secret and [ErrShortSecret] for one of less than 16 bytes.
func New(secret string) (*Box, error) {
	switch {
	case secret == "":
		return nil, ErrNoSecret
	case len(secret) < shortest:
		return nil, ErrShortSecret
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "delaytask: secrets at rest, version 1", 32)
	if err != nil {
		return nil, fmt.Errorf("DELAYTASK_SECRET gives no key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("DELAYTASK_SECRET gives a key that cannot be used: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("DELAYTASK_SECRET gives a key that cannot be used: %w", err)
	}
	return &Box{aead}, nil
}

// Seal returns a version byte, a random nonce and the encrypted plaintext, 29 bytes longer than that (AES-256-GCM).
// place names where it is kept, as by an application and an address: it can be opened nowhere else.
func (b *Box) Seal(plaintext []byte, place ...string) ([]byte, error) {
	if b == nil {
		return nil, fmt.Errorf("a secret cannot be sealed: %w", ErrNoSecret)
	}
	return b.aead.Seal([]byte{version}, nil, plaintext, data(place)), nil
}

// Open returns what was encrypted for the place. It returns [ErrNotOpened] when that is not possible.
func (b *Box) Open(encrypted []byte, place ...string) ([]byte, error) {
	if b == nil {
		return nil, fmt.Errorf("a secret cannot be opened: %w", ErrNoSecret)
	}
	if len(encrypted) == 0 || encrypted[0] != version {
		return nil, fmt.Errorf("a secret cannot be opened: %w", ErrNotOpened)
	}
	plaintext, err := b.aead.Open(nil, nil, encrypted[1:], data(place))
	if err != nil {
		return nil, fmt.Errorf("a secret cannot be opened: %w", ErrNotOpened)
	}
	return plaintext, nil
}

// data is what is authenticated beside the plaintext. Lengths keep the parts apart: "ab" and "c" is another place than
// "a" and "bc".
func data(place []string) []byte {
	d := []byte{version}
	for _, part := range place {
		d = binary.BigEndian.AppendUint64(d, uint64(len(part)))
		d = append(d, part...)
	}
	return d
}
