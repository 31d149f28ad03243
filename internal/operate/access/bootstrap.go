package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// The variables that give a server its first token.
const (
	BootstrapVar     = "DELAYTASK_BOOTSTRAP_TOKEN"
	BootstrapFileVar = "DELAYTASK_BOOTSTRAP_TOKEN_FILE"
)

// Create is the command that makes a token with all rights. What else it takes to reach the database may follow.
const Create = "delaytask token create admin --tags '*' --verbs all"

// NoToken says why a server refuses everything, and how to change that.
const NoToken = "no token yet: set " + BootstrapVar + " or " + BootstrapFileVar + " at the start, or run: " + Create

const (
	leastSecret   = 24  // characters of a token
	mostSecret    = 200 // the login page takes so many
	leastDistinct = 8   // a random text of leastSecret characters has more, in hexadecimal too
)

// BootstrapFromEnv returns the bootstrap token that the environment gives, or nil. It returns [ErrInvalid] when two are
// given, and for a secret that is too short or not random.
func BootstrapFromEnv(getenv func(string) string) (*row.AccessToken, error) {
	from, secret := BootstrapVar, getenv(BootstrapVar)
	if path := getenv(BootstrapFileVar); path != "" {
		if secret != "" {
			return nil, fmt.Errorf("%w: %s and %s are both set; unset one", ErrInvalid, BootstrapVar,
				BootstrapFileVar)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", BootstrapFileVar, err)
		}
		from, secret = BootstrapFileVar, string(content)
	} else if secret == "" {
		return nil, nil
	}
	token, err := newBootstrap(strings.TrimSpace(secret))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make one with: openssl rand -base64 32", from, err)
	}
	return &token, nil
}

// newBootstrap returns the row of a bootstrap token, whose name tells it from others. No error shows the secret.
func newBootstrap(secret string) (token row.AccessToken, err error) {
	distinct := map[byte]bool{}
	for i := range len(secret) {
		if distinct[secret[i]] = true; secret[i] <= ' ' || secret[i] > '~' {
			return token, fmt.Errorf("%w: the token has a character that a header cannot have", ErrInvalid)
		}
	}
	switch {
	case IsExample(secret):
		return token, fmt.Errorf("%w: the token is still the one of the example", ErrInvalid)
	case len(secret) < leastSecret || len(secret) > mostSecret:
		return token, fmt.Errorf("%w: the token has %d characters: want %d to %d", ErrInvalid, len(secret), leastSecret,
			mostSecret)
	case len(distinct) < leastDistinct:
		return token, fmt.Errorf("%w: the token has %d different characters, so it is not random", ErrInvalid,
			len(distinct))
	}
	hash := sha256.Sum256([]byte(secret))
	return row.AccessToken{
		Name: row.BootstrapPrefix + hex.EncodeToString(hash[:4]), Hash: hash, Tags: []string{anyTag},
		Verbs: []string{row.BootstrapVerb},
	}, nil
}

// IsExample reports whether a secret was left as the files in deploy/ have it.
func IsExample(secret string) bool { return strings.Contains(strings.ToLower(secret), "change-me") }
