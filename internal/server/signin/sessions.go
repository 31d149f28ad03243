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

	"github.com/delaytask/delaytask/internal/lifecycle/batch"
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

	readers      = 2    // at once, of sessions that are known here, and as many of others
	mostSessions = 1000 // that are remembered

	mostStrangers = 1000   // cookies in one reading of those that this process has not seen
	mostWaiting   = 10_000 // such cookies that wait for their reading

	mostOfToken = 1200 // sessions that a token begins here within a minute; the next one ends the first of them
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
	store     Store
	reading   singleflight.Group
	readers   *semaphore.Weighted
	strangers *batch.Coalescer[*stranger]

	mu    sync.Mutex
	known map[[32]byte]reading
	begun map[string][]begun // of the last minute, by tokens, the oldest first
	retry time.Time          // a request with a session that was read before waits for no reading before this
}

// begun is when a session began.
type begun struct {
	at   time.Time
	hash [32]byte
}

// stranger is a cookie that this process has not seen: made up, or of another server. Strangers share readings, so that
// made-up cookies delay no caller.
type stranger struct {
	hash  [32]byte
	found chan singleflight.Result // of a reading; it has room for one
}

// reading is a session as it was read.
type reading struct {
	row.Session
	asked time.Time // zero for a session that was begun here and not read yet
	now   row.Time  // the database's time at some moment since
	used  time.Time
}

func (r reading) age() time.Duration { return time.Since(r.asked) }

// over takes the latest time that the database's clock can show.
func (r reading) over() bool { return r.now.Add(r.age()) >= r.Expires }

func newSessions(s Store) *sessions {
	found := &sessions{store: s, readers: semaphore.NewWeighted(readers), known: map[[32]byte]reading{},
		begun: map[string][]begun{}}
	found.strangers = batch.New(batch.Config[*stranger]{
		Flush: found.readStrangers, Panicked: func(asked []*stranger, value any) {
			answer(asked, fmt.Errorf("reading sessions panicked: %v", value))
		},
		Flushers: readers, MaxItems: mostStrangers, QueueBytes: mostWaiting, Size: func(*stranger) int { return 1 },
	})
	return found
}

// begin stores a session of a token, and returns its cookie.
func (s *sessions) begin(ctx context.Context, token string, tokenHash [32]byte) (cookie string, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	cookie = base64.RawURLEncoding.EncodeToString(random[:])
	r := row.Session{Hash: sha256.Sum256([]byte(cookie)), Token: token, TokenHash: tokenHash}
	if err = s.store.CreateSession(ctx, r, life); err != nil {
		return "", err
	}
	for _, hash := range s.note(r) {
		_ = s.delete(ctx, hash) // otherwise it ends by itself
	}
	return cookie, nil
}

// note remembers a session that has begun, and returns sessions of its token that are too many. A right token always
// enters, and a program that signs in again and again must not fill the table.
func (s *sessions) note(r row.Session) (tooMany [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(reading{Session: r})
	own := slices.DeleteFunc(s.begun[r.Token], func(b begun) bool { return time.Since(b.at) >= time.Minute })
	if len(own) >= mostOfToken {
		tooMany = append(tooMany, own[0].hash)
		own = own[1:]
	}
	s.begun[r.Token] = append(own, begun{time.Now(), r.Hash})
	return tooMany
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
	return s.delete(ctx, found.Hash)
}

// delete deletes the session with this hash, if there is one.
func (s *sessions) delete(ctx context.Context, hash [32]byte) error {
	err := s.store.DeleteSession(ctx, hash)
	s.forget(hash) // after a failure, too: while the database is away this process accepts it no more
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
	old, seen := s.known[hash]
	if seen {
		old.used = time.Now()
		s.known[hash] = old
	}
	retry := s.retry
	s.mu.Unlock()
	there := seen && old.age() < kept
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
	case result := <-s.ask(hash, seen):
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

// ask has the session read: at once when it was seen before, and with other strangers when it was not.
func (s *sessions) ask(hash [32]byte, seen bool) <-chan singleflight.Result {
	if seen {
		return s.reading.DoChan(string(hash[:]), func() (any, error) { return s.read(hash) })
	}
	asked := &stranger{hash: hash, found: make(chan singleflight.Result, 1)}
	if s.strangers.Add(asked) != nil {
		asked.found <- singleflight.Result{Err: errSlow}
	}
	return asked.found
}

// readStrangers reads the sessions of cookies that this process has not seen.
func (s *sessions) readStrangers(all []*stranger) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	asked := time.Now()
	hashes := make([][32]byte, len(all))
	for i := range all {
		hashes[i] = all[i].hash
	}
	found, now, err := s.store.Sessions(ctx, hashes)
	if err != nil {
		answer(all, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range found {
		s.keep(reading{r, asked, now.Time, time.Now()})
	}
	for _, one := range all {
		if r, there := s.known[one.hash]; there {
			one.found <- singleflight.Result{Val: r}
		} else {
			one.found <- singleflight.Result{Err: errNoSession}
		}
	}
}

// answer answers the strangers that have no answer yet.
func answer(asked []*stranger, err error) {
	for _, one := range asked {
		select {
		case one.found <- singleflight.Result{Err: err}:
		default:
		}
	}
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
		s.keep(reading{r, asked, now, used[r.Hash]})
	}
}

// keep remembers a session, in the place of the one that was read longest ago where there are too many. s.mu is held.
func (s *sessions) keep(r reading) {
	if _, there := s.known[r.Hash]; !there && len(s.known) >= mostSessions {
		oldest := r
		for _, other := range s.known {
			if oldest.Hash == r.Hash || other.asked.Before(oldest.asked) {
				oldest = other
			}
		}
		delete(s.known, oldest.Hash)
	}
	s.known[r.Hash] = r
}
