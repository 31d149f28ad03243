package push

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor/webhook"
)

// rotation is how long a former secret signs beside its successor, which the receiver has to adopt within that time.
const rotation = 24 * time.Hour

// secrets sign the calls to an address; their JSON is encrypted.
type secrets struct {
	Secret string   `json:"secret"`
	Former string   `json:"former,omitempty"`
	Until  row.Time `json:"until,omitempty"` // on the database's clock
}

// replaced returns the secrets after a registration. The same secret changes nothing; instances behind one address may
// register in any order during a change of the secret.
func (s secrets) replaced(by string, now row.Time) secrets {
	if s.Secret == by || s.Secret == "" {
		s.Secret = by
		return s
	}
	return secrets{Secret: by, Former: s.Secret, Until: now.Add(rotation)}
}

// signing returns those that sign now.
func (s secrets) signing(now row.Time) ([]webhook.Secret, error) {
	texts := []string{s.Secret}
	if s.Former != "" && now < s.Until {
		texts = append(texts, s.Former)
	}
	all := make([]webhook.Secret, len(texts))
	for i, text := range texts {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			return nil, err
		}
		all[i] = secret
	}
	return all, nil
}

// sealSecret returns the new value for the row of the receiver, nil when it stays.
func (r *Registry) sealSecret(w row.Receiver, secret string, before row.Receiver, now row.Time) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	if r.Secrets == nil {
		return nil, refused(wire.CodeSecretsImpossible, "body.secret",
			"this server cannot keep secrets: its operator has to set DELAYTASK_SECRET; without a secret the calls "+
				"are not signed")
	}
	if _, err := webhook.ParseSecret(secret); err != nil {
		return nil, refused(wire.CodeInvalidParameter, "body.secret", err.Error())
	}
	var former secrets
	if before.Secret != nil {
		former, _ = r.open(before) // a secret that cannot be opened signs nothing
	}
	text, err := json.Marshal(former.replaced(secret, now))
	if err != nil {
		return nil, fmt.Errorf("a receiver's secret cannot be sealed: %w", err)
	}
	return r.Secrets.Seal(text, place(w)...)
}

// open decrypts the secrets of a receiver that has some.
func (r *Registry) open(w row.Receiver) (s secrets, err error) {
	text, err := r.Secrets.Open(w.Secret, place(w)...)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		// The error itself quotes the text.
		return secrets{}, fmt.Errorf("a receiver's secret is not what was encrypted: %T", err)
	}
	return s, nil
}

// place binds encrypted data to its row: in another row it would sign for another receiver.
func place(w row.Receiver) []string { return []string{"worker", w.App, w.Address} }
