package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

func TestRegistrationThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite), func(c *Config) { c.Secrets = nil })
	refuses := func(change func(*wire.Register), status int, code, where string) {
		t.Helper()
		asked := wire.Register{App: "shop", Address: "http://127.0.0.1/", Tags: []string{"t"}}
		change(&asked)
		_, err := f.registry.Register(t.Context(), &asked)
		wantProblem(t, err, status, code)
		if p, ok := errors.AsType[*wire.Problem](err); ok && (len(p.Errors) != 1 || p.Errors[0].Location != where) {
			t.Errorf("%s: located at %+v, want %s", code, p.Errors, where)
		}
	}
	for _, app := range []string{"", "a b", strings.Repeat("a", 129), "ä"} {
		refuses(func(r *wire.Register) { r.App = app }, 400, wire.CodeInvalidParameter, "body.app")
	}
	for _, ttl := range []time.Duration{time.Millisecond, 4999 * time.Millisecond, time.Hour + 1} {
		refuses(func(r *wire.Register) { r.TTL = wire.Duration(ttl) }, 400, wire.CodeInvalidTTR, "body.ttl")
	}
	refuses(func(r *wire.Register) { r.Tags = nil }, 400, wire.CodeInvalidTag, "body.tags")
	refuses(func(r *wire.Register) { r.Tags = make([]string, 101) }, 400, wire.CodeInvalidTag, "body.tags")
	refuses(func(r *wire.Register) { r.Tags = []string{"t", "a b"} }, 400, wire.CodeInvalidTag, "body.tags[1]")
	refuses(func(r *wire.Register) { r.Tags = []string{"t", "u", "t"} }, 400, wire.CodeInvalidTag, "body.tags[2]")
	refuses(func(r *wire.Register) { r.Tags = []string{"t", "http"} }, 409, wire.CodeConflict, "body.tags[1]")
	for _, address := range []string{"", "nowhere", "ftp://127.0.0.1/", "http://u:p@127.0.0.1/",
		"http://127.0.0.1/" + strings.Repeat("a", 2048)} {
		refuses(func(r *wire.Register) { r.Address = address }, 400, wire.CodeInvalidAddress, "body.address")
	}
	refuses(func(r *wire.Register) { r.Address = "http://10.0.0.1/" }, 422, wire.CodeBlockedAddress, "body.address")
	refuses(func(r *wire.Register) { r.Secret = webhook.NewSecret().Reveal() }, 422, wire.CodeSecretsImpossible,
		"body.secret")
	f.registry.Secrets = newBox(t, "0123456789abcdef")
	refuses(func(r *wire.Register) { r.Secret = "whsec_short" }, 400, wire.CodeInvalidParameter, "body.secret")

	if all, err := f.registry.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("what was refused is stored: %+v, %v", all, err)
	}
}

// An address that the guard never allows is refused at once, with the setting that would allow it; a name is resolved
// when it is dialled.
func TestAddressThatCouldNeverBeCalledIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite))
	guard, err := webhook.NewGuard(webhook.GuardConfig{Allow: []string{"10.1.0.0/16", "hooks.internal"}})
	servertest.OK(t, err)
	f.registry.Client, err = webhook.New(webhook.Config{Guard: guard})
	servertest.OK(t, err)
	t.Cleanup(f.registry.Client.Close)
	for address, allowed := range map[string]bool{
		"http://10.2.0.1/": false, "https://[::1]/": false, "http://LOCALHOST.:8080/": false,
		"https://api.localhost/": false, "http://10.1.0.1:8080/": true, "http://hooks.internal/": true,
		"https://shop.example.com/": true, "http://localhost.example/": true,
	} {
		_, err := f.registry.Register(t.Context(), &wire.Register{App: "shop", Address: address, Tags: []string{"t"}})
		if allowed && err != nil || !allowed && (err == nil || !strings.Contains(err.Error(), "push.allow")) {
			t.Errorf("%s: %v", address, err)
		}
		if !allowed {
			wantProblem(t, err, 422, wire.CodeBlockedAddress)
		}
	}
}

// fullStore reports more receivers than are stored.
type fullStore struct {
	Store
	live   []row.Receiver
	stored int
}

func (s fullStore) Receivers(ctx context.Context) ([]row.Receiver, row.Reading, error) {
	live, reading, err := s.Store.Receivers(ctx)
	return append(live, s.live...), reading, err
}

func (s fullStore) CountReceivers(ctx context.Context) (int, error) {
	n, err := s.Store.CountReceivers(ctx)
	return n + s.stored, err
}

func TestThereAreOnlySoManyReceivers(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite))
	register := func(r *Registry, app, address string) error {
		_, err := r.Register(t.Context(), &wire.Register{App: app, Address: "http://127.0.0.1/" + address,
			Tags: []string{"t"}})
		return err
	}
	others := func(n int, app func(n int) string) (all []row.Receiver) {
		for n := range n {
			all = append(all, row.Receiver{App: app(n), Address: fmt.Sprint(n)})
		}
		return all
	}
	check := func(name string, full fullStore, refused ...string) {
		t.Helper()
		c := f.registry.Config
		full.Store = c.Store
		c.Store = full
		r, err := New(c)
		servertest.OK(t, err)
		for _, app := range []string{"shop", "mail"} {
			if err := register(r, app, "old"); err != nil {
				t.Errorf("%s: %s again: %v", name, app, err)
			}
			err := register(r, app, url.PathEscape(name))
			if slices.Contains(refused, app) {
				wantProblem(t, err, 409, wire.CodeTooManyReceivers)
			} else if err != nil {
				t.Errorf("%s: %s: %v", name, app, err)
			}
		}
	}
	check("nothing", fullStore{})
	shops := func(int) string { return "shop" }
	check("one less of the application", fullStore{live: others(mostOfApp-3, shops)})
	check("of the application", fullStore{live: others(mostOfApp-3, shops)}, "shop")
	check("of all", fullStore{live: others(mostLive, func(n int) string { return fmt.Sprint(n % 100) })}, "shop",
		"mail")
	check("with the expired", fullStore{stored: mostStored - 1}, "shop", "mail")
}

func TestReceiverIsShownKeptAndRemoved(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		r := f.registry
		if all, err := r.List(t.Context()); err != nil || all == nil || len(all) != 0 {
			t.Errorf("an empty list: %v, %v", all, err)
		}
		before := f.Now()
		w := f.register("shop", "http://127.0.0.1/", "b", "a")
		life := w.Expires.Std().Sub(w.Created.Std())
		if w.ID == 0 || w.App != "shop" || w.Address != "http://127.0.0.1/" || fmt.Sprint(w.Tags) != "[a b]" ||
			w.Signed || w.TTLMS != 30_000 || life < 30*time.Second || life > 50*time.Second ||
			w.Created.Std().Before(before.Add(-time.Second)) {
			t.Errorf("registered as %+v", w)
		}
		all, err := r.List(t.Context())
		if err != nil || len(all) != 1 || fmt.Sprint(all[0]) != fmt.Sprint(w) {
			t.Errorf("listed as %+v, %v", all, err)
		}
		got, err := r.Get(t.Context(), int64(w.ID))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(w) {
			t.Errorf("got as %+v, %v", got, err)
		}
		beaten, err := r.Heartbeat(t.Context(), int64(w.ID))
		if err != nil || !beaten.Expires.Std().After(w.Expires.Std()) || beaten.ID != w.ID {
			t.Errorf("after a heartbeat %+v, %v", beaten, err)
		}
		again, err := r.Register(t.Context(), &wire.Register{App: "shop", Address: "http://127.0.0.1/",
			Tags: []string{"c"},
			TTL:  wire.Duration(time.Minute)})
		if err != nil || again.ID != w.ID || fmt.Sprint(again.Tags) != "[c]" || again.TTLMS != 60_000 {
			t.Errorf("registered again as %+v, %v", again, err)
		}
		if kept := f.register("shop", "http://127.0.0.1/", "c"); kept.TTLMS != 60_000 {
			t.Errorf("registered again without a ttl as %+v", kept)
		}
		servertest.OK(t, r.Remove(t.Context(), int64(w.ID)))
		_, get := r.Get(t.Context(), int64(w.ID))
		_, beat := r.Heartbeat(t.Context(), int64(w.ID))
		for _, err := range []error{get, beat, r.Remove(t.Context(), int64(w.ID))} {
			wantProblem(t, err, 404, wire.CodeNotFound)
		}
	})
}

func TestTagIsServedWhileItsReceiversLive(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		called := make(chan *http.Request, 9)
		w := f.register("shop", answer(t, 200, called), "t")
		f.awaitServed("t", true)
		expired := time.Now().UTC().Add(-time.Minute) // those that expired an hour ago are purged
		servertest.Exec(t, d.DSN, "UPDATE delay_task_worker SET expire_time = ?", expired.Format(time.DateTime))
		f.awaitServed("t", false)
		id := f.save("t", nil)
		e, err := f.Explain(t.Context(), delaytask.ID(id))
		// The clock may say first that it is not due.
		if err != nil || !strings.Contains(e.Text, "No live node serves the tag t") {
			t.Errorf("explained as %s: %s, %v", e.Reason, e.Text, err)
		}

		// A heartbeat after an outage finds its row, as long as it has not been purged.
		if _, err := f.registry.Heartbeat(t.Context(), int64(w.ID)); err != nil {
			t.Fatal(err)
		}
		servertest.Receive(t, called, "the call after the heartbeat")
		f.awaitStatus(id, delaytask.Completed)
		// A server whose settings are not durable is warned of when it is opened.
		if n := f.count("level=WARN") - f.count("the database works, but not as well as it should"); n > 0 {
			t.Errorf("warned %d times about what is usual", n)
		}
	})
}

func TestRegistrationCountsAtOnce(t *testing.T) {
	t.Parallel()
	f := start(t, dbtest.New(t, dbtest.SQLite), func(c *Config) { c.Every = time.Hour })
	w := f.register("shop", "http://127.0.0.1/", "t") // which waits until it can be called
	servertest.OK(t, f.registry.Remove(t.Context(), int64(w.ID)))
	servertest.Eventually(t, "it is called no more", func() bool {
		return f.registry.directory.Load().find("t", "shop") == nil
	})
}

func TestTagThatIsServedOtherwiseIsLeftAlone(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	f := start(t, d)
	ran := make(chan struct{}, 9)
	err := f.Register("own", processor.Func(func(context.Context, *delaytask.Task) error {
		ran <- struct{}{}
		return nil
	}))
	servertest.OK(t, err)
	called := make(chan *http.Request, 9)
	w := f.register("shop", answer(t, 200, called), "own", "t")
	f.awaitServed("t", true)
	// As a process with another configuration would.
	servertest.Exec(t, d.DSN, `UPDATE delay_task_worker SET tags = '["http","own","t"]'`)
	servertest.Eventually(t, "both tags are refused", func() bool {
		return f.count("tag=own") == 1 && f.count("tag=http") == 1
	})
	id := f.save("own", nil)
	servertest.Receive(t, ran, "the run of the process' own processor")
	f.awaitStatus(id, delaytask.Completed)
	if len(called) > 0 {
		t.Error("the receiver was called as well")
	}
	servertest.OK(t, f.registry.Remove(t.Context(), int64(w.ID)))
	f.awaitServed("t", false)
	f.awaitServed("own", true)
	if n := f.count("receivers are not called"); n != 2 {
		t.Errorf("warned %d times, want once for each tag", n)
	}
}

// flaky is a store that fails while it is broken.
type flaky struct {
	Store
	broken atomic.Bool
	asked  atomic.Int64 // in vain
}

func (f *flaky) Receivers(ctx context.Context) ([]row.Receiver, row.Reading, error) {
	if f.broken.Load() {
		f.asked.Add(1)
		return nil, row.Reading{}, errors.New("no database")
	}
	return f.Store.Receivers(ctx)
}

func TestReceiversStayWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	store := &flaky{}
	f := start(t, dbtest.New(t, dbtest.SQLite), func(c *Config) { store.Store, c.Store = c.Store, store })
	f.register("shop", "http://127.0.0.1/", "t")
	store.broken.Store(true)
	servertest.Eventually(t, "it is asked again and again", func() bool { return store.asked.Load() >= 5 })
	if len(f.registry.directory.Load().find("t", "shop")) != 1 {
		t.Error("no receiver is called any more")
	}
	if n := f.count("cannot be read"); n != 1 {
		t.Errorf("warned %d times, want once", n)
	}
}
