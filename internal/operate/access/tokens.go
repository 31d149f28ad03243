package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// fresh is how long a list is used without another reading: a revoked token is refused after that.
	fresh = 2 * time.Second
	kept  = 5 * time.Minute // how long a list is used while the database is away

	readTimeout = 5 * time.Second        // of one reading
	patience    = 500 * time.Millisecond // how long a check waits for a reading while it has an older list
	pause       = time.Second            // between readings of a database that is away, while there is an older list
)

var errSlow = errors.New("the database does not answer")

// Reader reads the stored tokens, and the time of the database with them.
type Reader interface {
	AccessTokens(ctx context.Context) ([]row.AccessToken, row.Reading, error)
}

// Tokens checks bearer tokens against those that are stored. All its methods may be used by many goroutines.
type Tokens struct {
	reader  Reader
	reading singleflight.Group

	always bool // a token is required before one exists, too

	mu    sync.Mutex
	any   bool      // there is a token, or was one since the start
	last  *list     // nil before the first reading
	retry time.Time // with a list, a check waits for no reading before this
}

// NewTokens returns Tokens that always require one. Nothing is read before the first call.
func NewTokens(r Reader) *Tokens { return &Tokens{reader: r, always: true} }

// NewTokensOnceThereAreAny returns Tokens that require one as soon as one is stored.
func NewTokensOnceThereAreAny(r Reader) *Tokens { return &Tokens{reader: r} }

// Asked reports whether callers need a token. A server that began without any requires one within 2 seconds of the
// first creation, and still does after the last is revoked. Like Check, it returns [ErrUnavailable] when the tokens
// cannot be read.
func (t *Tokens) Asked(ctx context.Context) (bool, error) {
	if t.always {
		return true, nil
	}
	return t.exist(ctx)
}

// Missing reports whether callers need a token before one was made: it is false from the first one on. Like Check, it
// returns [ErrUnavailable] when the tokens cannot be read.
func (t *Tokens) Missing(ctx context.Context) (bool, error) {
	if !t.always {
		return false, nil
	}
	there, err := t.exist(ctx)
	return !there && err == nil, err
}

// exist reports whether there is a token, or was one since the start.
func (t *Tokens) exist(ctx context.Context) (bool, error) {
	t.mu.Lock()
	there := t.any
	t.mu.Unlock()
	if there {
		return true, nil
	}
	l, err := t.current(ctx)
	if err != nil || !l.any {
		return false, err
	}
	t.mu.Lock()
	t.any = true
	t.mu.Unlock()
	return true, nil
}

// Check returns the caller of the token, which is what follows "Bearer " in a request. It returns [ErrUnauthorized]
// when no caller has it, and [ErrBootstrapEnded] for a bootstrap token that has ended. A token that was created or
// revoked within the last 2 seconds may be judged as before. While the database is away the last reading counts, for 5
// minutes; then Check returns [ErrUnavailable].
func (t *Tokens) Check(ctx context.Context, bearer string) (Caller, error) {
	hash, ok := hashOf(bearer)
	if !ok {
		return Caller{}, ErrUnauthorized
	}
	l, err := t.current(ctx)
	if err != nil {
		return Caller{}, err
	}
	return l.find(hash)
}

// Holder returns the caller of the token that has this name and, as SHA-256, this hash: the caller of a session that
// began with it. It returns [ErrUnauthorized] once the token was revoked or has expired, also when another one has its
// name. It knows that as soon as Check does, and returns [ErrUnavailable] like it.
func (t *Tokens) Holder(ctx context.Context, name string, hash [sha256.Size]byte) (Caller, error) {
	l, err := t.current(ctx)
	if err != nil {
		return Caller{}, err
	}
	c, err := l.find(hash)
	if err == nil && c.name != name {
		return Caller{}, ErrUnauthorized
	}
	return c, err
}

func (t *Tokens) current(ctx context.Context) (*list, error) {
	t.mu.Lock()
	old, retry := t.last, t.retry
	t.mu.Unlock()
	var tooLong <-chan time.Time // never, without a list that could be used instead
	if old != nil {
		age := old.age()
		if age < fresh || age < kept && time.Now().Before(retry) {
			return old, nil
		}
		if age < kept {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			tooLong = timer.C
		}
	}
	err := errSlow
	select {
	case result := <-t.reading.DoChan("", t.read):
		if result.Err == nil {
			return result.Val.(*list), nil
		}
		err = result.Err
	case <-tooLong:
		t.putOff()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if old != nil && old.age() < kept {
		return old, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// read serves all waiting checks, so the context of one of them does not end it.
func (t *Tokens) read() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	asked := time.Now()
	tokens, now, err := t.reader.AccessTokens(ctx)
	if err != nil {
		t.putOff()
		return nil, err
	}
	l := newList(tokens, asked, now.Time)
	t.mu.Lock()
	t.last, t.retry = l, time.Time{}
	t.mu.Unlock()
	return l, nil
}

func (t *Tokens) putOff() {
	t.mu.Lock()
	t.retry = time.Now().Add(pause)
	t.mu.Unlock()
}

// list is what one reading of the tokens found.
type list struct {
	tokens  []row.AccessToken
	callers []Caller // of the tokens
	any     bool     // one of them is no bootstrap token that has ended
	whole   bool     // one of them has all rights, other than by being a bootstrap token
	asked   time.Time
	now     row.Time // the database's time at some moment since
}

func newList(tokens []row.AccessToken, asked time.Time, now row.Time) *list {
	l := &list{tokens: tokens, callers: make([]Caller, len(tokens)), asked: asked, now: now}
	for i, t := range tokens {
		bootstrap, ended := t.Bootstrap()
		l.any, l.whole = l.any || !ended, l.whole || t.Whole()
		l.callers[i] = Caller{name: t.Name, tags: t.Tags}
		if bootstrap {
			l.callers[i].verbs = []Verb{All}
			continue
		}
		for _, v := range t.Verbs { // one that is not known here, as a later release may write, allows nothing
			l.callers[i].verbs = append(l.callers[i].verbs, Verb(v))
		}
	}
	return l
}

// age is how old the list is at most.
func (l *list) age() time.Duration { return time.Since(l.asked) }

// find returns the caller of the token. It compares all tokens, and all bytes of each, so that its duration reveals
// nothing.
func (l *list) find(hash [32]byte) (Caller, error) {
	found := -1
	for i := range l.tokens {
		if subtle.ConstantTimeCompare(l.tokens[i].Hash[:], hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Caller{}, ErrUnauthorized
	}
	bootstrap, ended := l.tokens[found].Bootstrap()
	switch {
	case ended, bootstrap && l.whole:
		return Caller{}, ErrBootstrapEnded
	case l.expired(l.tokens[found]):
		return Caller{}, ErrUnauthorized
	default:
		return l.callers[found], nil
	}
}

// expired takes the latest time that the database's clock can show: a token is never valid for longer than was asked
// for.
func (l *list) expired(t row.AccessToken) bool {
	return !t.Expires.IsZero() && l.now.Add(l.age()) >= t.Expires
}

// A token has a prefix by which people and scanners for leaked secrets recognise it.
const tokenPrefix = "dt_"

const tokenBytes = 32

// New makes a token. The secret is what a caller sends; the stored row does not contain it. tags and verbs are as
// [ParseTags] and [ParseVerbs] take them; the token is valid until expires by the database's clock, and for ever when
// that is zero. New returns [ErrInvalid] for an invalid name, tag or verb.
func New(name string, tags []string, verbs []Verb, expires row.Time) (secret string, token row.AccessToken, err error) {
	if !delaytask.ValidTag(name) {
		return "", token, fmt.Errorf("%w: the name %.140q of a token: want 1-128 bytes of A-Z a-z 0-9 . _ - : /",
			ErrInvalid, name)
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

// hashOf returns the hash of what may be a token. It refuses anything else without hashing it, however long it is.
func hashOf(bearer string) (hash [sha256.Size]byte, ok bool) {
	if len(bearer) < leastSecret || len(bearer) > mostSecret {
		return hash, false
	}
	return sha256.Sum256([]byte(bearer)), true
}
