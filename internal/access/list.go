package access

import (
	"crypto/subtle"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// list is what one reading of the tokens found.
type list struct {
	tokens  []row.AccessToken
	callers []Caller // of the tokens
	asked   time.Time
	now     row.Time // the database's time at some moment since
}

func newList(tokens []row.AccessToken, asked time.Time, now row.Time) *list {
	l := &list{tokens: tokens, callers: make([]Caller, len(tokens)), asked: asked, now: now}
	for i, t := range tokens {
		l.callers[i] = Caller{name: t.Name, tags: t.Tags}
		for _, v := range t.Verbs { // one that is not known here, as a later release may write, allows nothing
			l.callers[i].verbs = append(l.callers[i].verbs, Verb(v))
		}
	}
	return l
}

// age is how old the list is at most.
func (l *list) age() time.Duration { return time.Since(l.asked) }

// find returns who has the token. It looks at all tokens, and at all bytes of each, so that the time it takes says nothing.
func (l *list) find(hash [32]byte) (Caller, error) {
	found := -1
	for i := range l.tokens {
		if subtle.ConstantTimeCompare(l.tokens[i].Hash[:], hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 || l.expired(l.tokens[found]) {
		return Caller{}, ErrUnauthorized
	}
	return l.callers[found], nil
}

// expired judges by the latest that the database's clock can show: a token is never good for longer than was promised.
func (l *list) expired(t row.AccessToken) bool {
	return !t.Expires.IsZero() && l.now.Add(l.age()) >= t.Expires
}
