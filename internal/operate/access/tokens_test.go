package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestANewTokenIsRandomAndOnlyItsHashIsStored(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^dt_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		secret, token, err := New("ci", []string{"order.*"}, []Verb{Save, Work}, 7)
		if err != nil || !shape.MatchString(secret) || seen[secret] {
			t.Fatalf("%q, %v", secret, err)
		}
		seen[secret] = true
		if token.Hash != sha256.Sum256([]byte(secret)) || token.Name != "ci" || token.Expires != 7 ||
			!slices.Equal(token.Tags, []string{"order.*"}) || !slices.Equal(token.Verbs, []string{"save", "work"}) {
			t.Fatalf("stored is %+v", token)
		}
	}
}

func TestATokenThatMakesNoSenseIsNotMade(t *testing.T) {
	t.Parallel()
	f := func(name, tag string, verb Verb) {
		t.Helper()
		secret, token, err := New(name, []string{tag}, []Verb{verb}, 0)
		if !errors.Is(err, ErrInvalid) || secret != "" || token.Hash != (row.AccessToken{}).Hash {
			t.Errorf("%.20q %q %q: %q, %v", name, tag, verb, secret, err)
		}
	}
	f("", "a", Save)
	f("a b", "a", Save)
	f(strings.Repeat("n", 129), "a", Save)
	f("ci", "a b", Save)
	f("ci", "a", "pop")
}

// table returns its tokens or an error. It counts the readings, and blocks them while it hangs.
type table struct {
	mu       sync.Mutex
	tokens   []row.AccessToken
	err      error
	now      row.Time // of the database; its clock runs as ours
	began    time.Time
	readings int
	hang     chan struct{}
}

var errAway = errors.New("connection refused")

func (r *table) AccessTokens(ctx context.Context) ([]row.AccessToken, row.Reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings++
	if hang := r.hang; hang != nil {
		r.mu.Unlock()
		select {
		case <-hang:
			r.mu.Lock()
		case <-ctx.Done():
			r.mu.Lock()
			return nil, row.Reading{}, ctx.Err()
		}
	}
	return r.tokens, row.Reading{Time: r.now.Add(time.Since(r.began))}, r.err
}

func (r *table) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *table) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readings
}

// start returns a table with a token, whose clock is far from ours, and what checks against it.
func start(t *testing.T, expires time.Duration) (*table, *Tokens, string) {
	t.Helper()
	now := row.At(time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC))
	var until row.Time
	if expires > 0 {
		until = now.Add(expires)
	}
	secret, token, err := New("ci", []string{"order.*"}, []Verb{Save}, until)
	servertest.OK(t, err)
	r := &table{tokens: []row.AccessToken{{Name: "zero"}, token}, now: now, began: time.Now()}
	return r, NewTokens(r), secret
}

func check(t *testing.T, tokens *Tokens, secret string, want error) {
	t.Helper()
	c, err := tokens.Check(t.Context(), secret)
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	if (want == nil) != (c.Name() == "ci" && c.May(Save, "order.close")) {
		t.Fatalf("the caller is %+v", c)
	}
}

func TestOnlyAStoredTokenIsACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		check(t, tokens, secret, nil)
		n := r.count()
		last := "A"
		if strings.HasSuffix(secret, last) {
			last = "B"
		}
		for _, wrong := range []string{
			"", "dt_", "Bearer " + secret, secret + "A", secret[:len(secret)-1], secret[:len(secret)-1] + last,
			"dt_" + strings.Repeat("A", 43), "xx_" + secret[3:], strings.ToUpper(secret), strings.Repeat("dt_", 1<<20),
		} {
			check(t, tokens, wrong, ErrUnauthorized)
		}
		if r.count() != n {
			t.Errorf("wrong tokens cost %d readings", r.count()-n)
		}
		if _, err := tokens.Check(t.Context(), "dt_"+strings.Repeat("x", 43)); strings.Contains(err.Error(), "xxx") {
			t.Errorf("the error shows the token: %v", err)
		}
	})
}

func TestARevokedTokenIsRefusedAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		check(t, tokens, secret, nil)
		r.set(func() { r.tokens = r.tokens[:1] })
		time.Sleep(2*time.Second - time.Millisecond)
		check(t, tokens, secret, nil)
		if n := r.count(); n != 1 {
			t.Errorf("%d readings, want one", n)
		}
		time.Sleep(time.Millisecond)
		check(t, tokens, secret, ErrUnauthorized)
		if n := r.count(); n != 2 {
			t.Errorf("%d readings, want 2", n)
		}
	})
}

func TestTheHolderIsOfTheTokenOfThatNameAndHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tokens, secret := start(t, time.Hour)
		hash := sha256.Sum256([]byte(secret))
		holder := func(name string, hash [32]byte, want error) {
			t.Helper()
			c, err := tokens.Holder(t.Context(), name, hash)
			if !errors.Is(err, want) || (want == nil) != c.May(Save, "order.close") {
				t.Errorf("%s %x: %+v, %v, want %v", name, hash[:4], c, err, want)
			}
		}
		holder("ci", hash, nil)
		holder("zero", hash, ErrUnauthorized)
		holder("ci", sha256.Sum256(nil), ErrUnauthorized)
		time.Sleep(time.Hour)
		holder("ci", hash, ErrUnauthorized)
	})
}

func TestTokensAreAskedForOnceThereAreAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, always, _ := start(t, 0)
		tokens, some := NewTokensOnceThereAreAny(r), r.tokens
		r.set(func() { r.tokens = nil })
		asked := func(want bool) {
			t.Helper()
			if got, err := tokens.Asked(t.Context()); got != want || err != nil {
				t.Errorf("asked: %t, %v, want %t", got, err, want)
			}
		}
		asked(false)
		r.set(func() { r.tokens = some })
		time.Sleep(fresh)
		asked(true)
		r.set(func() { r.tokens = nil })
		time.Sleep(time.Hour)
		asked(true)
		if got, err := always.Asked(t.Context()); !got || err != nil {
			t.Errorf("where they are always asked for: %t, %v", got, err)
		}
	})
}

func TestWithoutAnyReadingCallsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, always, secret := start(t, 0)
		r.set(func() { r.err = errAway })
		check(t, always, secret, ErrUnavailable)
		r.set(func() { r.err = nil })
		check(t, always, secret, nil) // at once, because there was no list to use meanwhile

		tokens := NewTokensOnceThereAreAny(r)
		r.set(func() { r.tokens, r.err = nil, errAway })
		if asked, err := tokens.Asked(t.Context()); asked || !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %t, %v", asked, err)
		}
		r.set(func() { r.err = nil })
		if asked, err := tokens.Asked(t.Context()); asked || err != nil {
			t.Errorf("got %t, %v", asked, err)
		}
		r.set(func() { r.err = errAway })
		time.Sleep(kept + time.Second)
		if asked, err := tokens.Asked(t.Context()); asked || !errors.Is(err, ErrUnavailable) {
			t.Errorf("long after the last reading: %t, %v", asked, err)
		}
	})
}

func TestATokenExpiresByTheDatabasesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, time.Minute)
		time.Sleep(time.Minute - time.Second)
		check(t, tokens, secret, nil)
		time.Sleep(time.Second - time.Millisecond)
		check(t, tokens, secret, nil)
		time.Sleep(time.Millisecond)
		check(t, tokens, secret, ErrUnauthorized) // by the time that has passed since the reading
		if n := r.count(); n != 1 {
			t.Errorf("%d readings, want one", n)
		}
		time.Sleep(time.Hour)
		check(t, tokens, secret, ErrUnauthorized)
	})
}

func TestManyChecksShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		r.hang = make(chan struct{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { check(t, tokens, secret, nil) })
		}
		synctest.Wait()
		close(r.hang)
		wg.Wait()
		if n := r.count(); n != 1 {
			t.Errorf("%d readings, want one", n)
		}
	})
}

func TestTheLastListServesWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		check(t, tokens, secret, nil)
		r.set(func() { r.err = errAway })
		time.Sleep(2 * time.Second)
		check(t, tokens, secret, nil)
		for range 100 {
			check(t, tokens, secret, nil)
		}
		check(t, tokens, "dt_"+strings.Repeat("A", 43), ErrUnauthorized)
		if n := r.count(); n != 2 {
			t.Errorf("a database that is away was asked %d times within a second, want once", n-1)
		}
		time.Sleep(5*time.Minute - 2*time.Second - time.Millisecond)
		check(t, tokens, secret, nil)
		time.Sleep(time.Millisecond)
		check(t, tokens, secret, ErrUnavailable)
		check(t, tokens, secret, errAway)
		r.set(func() { r.err = nil })
		check(t, tokens, secret, nil)
	})
}

func TestADatabaseThatHangsHoldsNoCallerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		check(t, tokens, secret, nil)
		r.set(func() { r.hang = make(chan struct{}) })
		time.Sleep(2 * time.Second)
		took := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			check(t, tokens, secret, nil)
			if d := time.Since(began); d != want {
				t.Errorf("a check took %s, want %s", d, want)
			}
		}
		took(patience)
		took(0) // the next ones do not wait
		took(0)
		time.Sleep(readTimeout) // the reading ends; goroutines of a bubble must
		synctest.Wait()

		unread := NewTokens(r) // without a list there is only waiting
		began := time.Now()
		check(t, unread, secret, ErrUnavailable)
		if d := time.Since(began); d != readTimeout {
			t.Errorf("the first check took %s, want %s", d, readTimeout)
		}
	})
}

func TestACheckEndsWithItsContextAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tokens, secret := start(t, 0)
		r.hang = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := tokens.Check(ctx, secret); !errors.Is(err, ErrUnavailable) ||
				!errors.Is(err, context.Canceled) {
				t.Errorf("the one that was cancelled: %v", err)
			}
		})
		synctest.Wait() // the reading is its own
		wg.Go(func() { check(t, tokens, secret, nil) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(r.hang)
		wg.Wait()
	})
}
