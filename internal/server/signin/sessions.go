package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	life = 12 * time.Hour // of a session

	// fresh is how long a session is used without another reading: one that was ended elsewhere is over after that.
	fresh = 2 * time.Second
	kept  = 5 * time.Minute // how long a session is used while the database is away

	readTimeout = 2 * time.Second        // of one reading
	patience    = 500 * time.Millisecond // how long a request waits for a reading of a session that was read before
	pause       = time.Second            // between readings of a database that is away

	// together is how long a session counts as used, so that it is read again with others: pages ask every 5 s.
	together = 15 * time.Second

	readers      = 2    // at once: requests with made-up cookies must not take the connections of others
	mostSessions = 1000 // that are remembered
)

var (
	errNoSession = errors.New("there is no such session, or it is over")
	errSlow      = errors.New("the database does not answer")
)

// Store keeps sessions.
type Store interface {
	// CreateSession stores a session that is over after so long by the database's clock.
	CreateSession(ctx context.Context, s row.Session, life time.Duration) error
	// Sessions returns the sessions with these hashes of cookies, at most 2,000, also ones that are over, and the
	// database's time if there is any.
	Sessions(ctx context.Context, hashes [][32]byte) ([]row.Session, row.Reading, error)
	// DeleteSession deletes a session. It does nothing for an unknown one.
	DeleteSession(ctx context.Context, hash [32]byte) error
}

// sessions finds sessions by their cookies, and remembers some of them.
type sessions struct {
	store   Store
	reading singleflight.Group
	readers *semaphore.Weighted

	mu    sync.Mutex
	known map[[32]byte]reading
	retry time.Time // a request with a session that was read before waits for no reading before this
}

// reading is a session as it was read.
type reading struct {
	row.Session
	asked time.Time
	now   row.Time // the database's time at some moment since
	used  time.Time
}

func (r reading) age() time.Duration { return time.Since(r.asked) }

// over takes the latest time that the database's clock can show.
func (r reading) over() bool { return r.now.Add(r.age()) >= r.Expires }

func newSessions(s Store) *sessions {
	return &sessions{store: s, readers: semaphore.NewWeighted(readers), known: map[[32]byte]reading{}}
}

// begin stores a session of a token, and returns its cookie.
func (s *sessions) begin(ctx context.Context, token string, tokenHash [32]byte) (cookie string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	cookie = base64.RawURLEncoding.EncodeToString(random[:])
	r := row.Session{Hash: sha256.Sum256([]byte(cookie)), Token: token, TokenHash: tokenHash}
	return cookie, s.store.CreateSession(ctx, r, life)
}

// hashOf returns the hash of a well-formed cookie. It refuses anything else without hashing it.
func hashOf(cookie string) (hash [32]byte, ok bool) {
	random, err := base64.RawURLEncoding.Strict().DecodeString(cookie)
	if err != nil || len(random) != len(hash) {
		return hash, false
	}
	return sha256.Sum256([]byte(cookie)), true
}

// end deletes the session of a cookie, if there is one. A made-up cookie costs no write.
func (s *sessions) end(ctx context.Context, cookie string) error {
	found, err := s.find(ctx, cookie)
	if errors.Is(err, errNoSession) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.store.DeleteSession(ctx, found.Hash)
	s.forget(found.Hash) // after a failure, too: while the database is away this process accepts it no more
	return err
}

func (s *sessions) forget(hash [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, hash)
}

// find returns the session of a cookie. It returns errNoSession when the cookie names no session, or it is over. While
// the database is away the last reading counts, for 5 minutes; then it returns another error.
func (s *sessions) find(ctx context.Context, cookie string) (row.Session, error) {
	hash, ok := hashOf(cookie)
	if !ok {
		return row.Session{}, errNoSession
	}
	r, err := s.current(ctx, hash)
	if err == nil && r.over() {
		err = errNoSession
	}
	return r.Session, err
}

func (s *sessions) current(ctx context.Context, hash [32]byte) (reading, error) {
	s.mu.Lock()
	old, there := s.known[hash]
	if there {
		old.used = time.Now()
		s.known[hash] = old
	}
	retry := s.retry
	s.mu.Unlock()
	there = there && old.age() < kept
	var tooLong <-chan time.Time // never, without a reading that could be used instead
	if there {
		if old.age() < fresh || time.Now().Before(retry) {
			return old, nil
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		tooLong = timer.C
	}
	err := errSlow
	select {
	case result := <-s.reading.DoChan(string(hash[:]), func() (any, error) { return s.read(hash) }):
		if result.Err == nil {
			return result.Val.(reading), nil
		}
		err = result.Err
	case <-tooLong:
		s.putOff()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if there && !errors.Is(err, errNoSession) {
		return old, nil
	}
	return reading{}, err
}

// read serves all requests that wait for this session, so the context of one of them does not end it. It reads all
// sessions in use: many open pages cost as little as one.
func (s *sessions) read(hash [32]byte) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	if err := s.readers.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other sessions: %w", err)
	}
	defer s.readers.Release(1)
	s.mu.Lock()
	r, there := s.known[hash]
	s.mu.Unlock()
	if there && r.age() < fresh { // another reading had it
		return r, nil
	}
	asked := time.Now()
	hashes := s.inUse(hash)
	found, now, err := s.store.Sessions(ctx, hashes)
	if err != nil {
		s.putOff()
		return nil, err
	}
	s.remember(hashes, found, asked, now.Time)
	at := slices.IndexFunc(found, func(r row.Session) bool { return r.Hash == hash })
	if at < 0 {
		return nil, errNoSession
	}
	return reading{Session: found[at], asked: asked, now: now.Time}, nil
}

// inUse returns the hash, and the hashes of other sessions in use whose readings are not fresh.
func (s *sessions) inUse(hash [32]byte) [][32]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	hashes := [][32]byte{hash}
	for other, r := range s.known {
		if other != hash && r.age() >= fresh/2 && time.Since(r.used) < together {
			hashes = append(hashes, other)
		}
	}
	return hashes
}

func (s *sessions) putOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = time.Now().Add(pause)
}

// remember keeps what was found of the sessions that were asked for, and forgets the others. It replaces what was read
// longest ago when there are too many.
func (s *sessions) remember(hashes [][32]byte, found []row.Session, asked time.Time, now row.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = time.Time{}
	used := map[[32]byte]time.Time{hashes[0]: time.Now()}
	for _, hash := range hashes {
		if old, there := s.known[hash]; there {
			used[hash] = old.used
			delete(s.known, hash)
		}
	}
	for _, r := range found {
		if _, there := used[r.Hash]; !there { // it was forgotten meanwhile
			continue
		}
		if len(s.known) >= mostSessions {
			s.forgetOldest()
		}
		s.known[r.Hash] = reading{r, asked, now, used[r.Hash]}
	}
}

func (s *sessions) forgetOldest() {
	var oldest reading
	for _, r := range s.known {
		if oldest.asked.IsZero() || r.asked.Before(oldest.asked) {
			oldest = r
		}
	}
	delete(s.known, oldest.Hash)
}
