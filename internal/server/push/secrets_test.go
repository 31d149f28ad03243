package push

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/report"
)

func TestFormerSecretSignsForADay(t *testing.T) {
	t.Parallel()
	one, two, three := webhook.NewSecret().Reveal(), webhook.NewSecret().Reveal(), webhook.NewSecret().Reveal()
	const now = row.Time(1_800_000_000_000_000)
	day := now.Add(24 * time.Hour)
	f := func(name string, s secrets, at row.Time, want ...string) {
		t.Helper()
		signing, err := s.signing(at)
		servertest.OK(t, err)
		var got []string
		for _, secret := range signing {
			got = append(got, secret.Reveal())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: signed with %v, want %v", name, got, want)
		}
	}
	first := secrets{}.replaced(one, now)
	second := first.replaced(two, now)
	f("the first", first, now, one)
	f("replaced", second, now, two, one)
	f("replaced, at the end of the day", second, day-1, two, one)
	f("replaced, a day later", second, day, two)
	f("the same again", second.replaced(two, now.Add(time.Hour)), day-1, two, one)
	f("the same again, a day after the change", second.replaced(two, now.Add(time.Hour)), day, two)
	f("back", second.replaced(one, now), now, one, two)
	f("two changes", second.replaced(three, now), now, three, two)
}

func TestSecretIsChangedWithoutLosingACall(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		f := start(t, d)
		one, two := webhook.NewSecret().Reveal(), webhook.NewSecret().Reveal()
		verified := make(chan [2]bool, 9)
		address := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			var by [2]bool
			for i, secret := range []string{one, two} {
				reference, broken := standardwebhooks.NewWebhook(secret)
				by[i] = err == nil && broken == nil && reference.Verify(body, r.Header) == nil
			}
			verified <- by
		})
		expect := func(want [2]bool) {
			t.Helper()
			id := f.save("t", "hello")
			if got := servertest.Receive(t, verified, "the call"); got != want {
				t.Errorf("signed by the old and the new secret: %v, want %v", got, want)
			}
			f.awaitStatus(id, delaytask.Completed)
		}
		awaitSigned := func(n int) {
			t.Helper()
			servertest.Eventually(t, "the calls are signed anew", func() bool {
				return len(f.registry.directory.Load().find("t", "shop")[0].signing) == n
			})
		}
		w := f.sign("shop", address, one, "t")
		expect([2]bool{true, false})
		f.sign("shop", address, two, "t")
		awaitSigned(2)
		expect([2]bool{true, true})
		if got, err := f.registry.Get(t.Context(), int64(w.ID)); err != nil || !got.Signed {
			t.Errorf("shown as %+v, %v", got, err)
		}

		var stored []byte
		if err := servertest.SQL(t, d.DSN).QueryRowContext(t.Context(),
			"SELECT secret FROM delay_task_worker").Scan(&stored); err != nil {
			t.Fatal(err)
		}
		for _, canary := range []string{one[10:30], two[10:30]} {
			if bytes.Contains(stored, []byte(canary)) || f.count(canary) > 0 {
				t.Error("a secret is stored or logged as it is")
			}
		}
		again := f.register("shop", address, "t") // without a secret: it keeps those that it has
		if !again.Signed || again.ID != w.ID {
			t.Errorf("registered again as %+v", again)
		}
		expect([2]bool{true, true})
		servertest.Exec(t, d.DSN, "UPDATE delay_task_worker SET expire_time = create_time")
		if again = f.register("shop", address, "t"); !again.Signed {
			t.Errorf("registered again after its ttl as %+v", again)
		}
		expect([2]bool{true, true})
		servertest.OK(t, f.registry.Remove(t.Context(), int64(w.ID)))
		f.register("shop", address, "t")
		awaitSigned(0)
		expect([2]bool{false, false})
	})
}

// A call without its signature would be refused, or accepted from any sender.
func TestReceiverIsNotCalledUnsigned(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	f := start(t, d)
	called := make(chan *http.Request, 9)
	secret := webhook.NewSecret().Reveal()
	address := answer(t, 200, called)
	f.sign("shop", address, secret, "t")
	servertest.Stop(t, f.Scheduler)

	g := start(t, d, func(c *Config) { c.Secrets = newBox(t, "fedcba9876543210") })
	g.register("other", answer(t, 200, nil), "t") // so that the tag is served
	id := g.save("t", nil, delaytask.WithApp("shop"))
	servertest.Eventually(t, "it is logged",
		func() bool { return g.count("its secret cannot be opened") > 0 })
	servertest.Eventually(t, "it is explained", func() bool { // the log is written while the task is claimed
		task := g.get(id)
		e, err := g.registry.Explain(t.Context(), &task)
		servertest.OK(t, err)
		return e.Reason == report.ReasonUnserved && strings.Contains(e.Text, "DELAYTASK_SECRET")
	})

	// Registering again with a new secret repairs it, whatever the row contained.
	g.sign("shop", address, secret, "t")
	servertest.Receive(t, called, "the call")
	g.awaitStatus(id, delaytask.Completed)
	if n := g.count("its secret cannot be opened"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
	for _, f := range []fixture{f, g} {
		if f.count(secret[10:30]) > 0 {
			t.Error("the secret is logged")
		}
	}
}
