package storetest

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

var clockTests = []test{
	{"The clock goes forward", func(t *tester) {
		last := t.start
		t.waitUntilAfter(last)
		for range 100 {
			now := t.now()
			if now < last {
				t.Fatalf("the clock went back from %v to %v", last, now)
			}
			last = now
		}
	}},
	{"All methods read the same clock, of a server with a name", func(t *tester) {
		reading, err := t.store.Now(t.Context())
		t.must(err)
		if reading.Server == "" {
			t.Error("the server has no identity")
		}
		claimed := t.claim(ref(t.inserted(t.task(1))))
		_, nodes, err := t.store.Nodes(t.Context())
		t.must(err)
		got, late := t.get(1), t.now()
		for name, at := range map[string]row.Time{
			"create_time": got.Created, "update_time": got.Updated,
			"the claim's reading": claimed.Reading.Time, "the nodes' reading": nodes.Time,
		} {
			t.within(name, at, reading.Time, late)
		}
	}},
}

var contextTests = []test{
	{"Nothing is done for a caller whose context has ended, which is the error", func(t *tester) {
		pending, executing := t.inserted(t.task(1)), t.take(t.task(2))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		insert := t.store.Insert(ctx, nil, []row.Row{t.task(3)})
		_, claim := t.store.Claim(ctx, row.Claim{
			Rows: []row.Ref{ref(pending)}, Executor: row.Executor{Process: 8, Claim: 1}})
		_, renew := t.store.Renew(ctx, []row.Lease{{Ref: ref(executing), TTR: 1e12}})
		_, update := t.store.Update(ctx, nil, []row.Change{change(executing, row.Completed)})
		_, now := t.store.Now(ctx)
		_, _, get := t.store.Get(ctx, nil, []int64{1})
		_, due := t.store.Due(ctx, everything("a"))
		_, _, tags := t.store.Tags(ctx)
		for i, err := range []error{insert, claim, renew, update, now, get, due, tags} {
			if !row.Ended(err) {
				t.Errorf("call %d: error %v, want that the context ended", i, err)
			}
		}
		t.missing(3)
		t.unchanged(pending)
		t.unchanged(executing)
	}},
	{"Nothing that is named is no error, and finds nothing", func(t *tester) {
		before := t.finish(1, "a", row.Completed, 0)
		ctx := t.Context()
		t.missing()
		t.insert()
		t.apply()
		t.adopt()
		t.discard(0)
		t.wins(row.Claim{Executor: executor})
		t.sees(everything())
		t.must(t.store.Leave(ctx, nil))
		states, err := t.store.States(ctx, nil)
		t.must(err)
		late, err := t.store.Lateness(ctx, nil, 0, 10)
		t.must(err)
		if n := len(t.findActive()) + len(t.renew()) + len(states) + len(late); n != 0 {
			t.Errorf("%d were found by no name", n)
		}
		t.unchanged(before)
	}},
}
