package storetest

var clockTests = []test{
	{"The clock goes forward", func(t *tester) {
		first := t.now()
		t.waitUntilAfter(first)
		last := first
		for range 100 {
			now := t.now()
			if now < last {
				t.Fatalf("the clock went back from %v to %v", last, now)
			}
			last = now
		}
	}},
	{"A reading names its server", func(t *tester) {
		reading, err := t.store.Now(t.Context())
		t.must(err)
		if reading.Server == "" {
			t.Fatal("the server has no identity")
		}
	}},
	{"All methods read the same clock", func(t *tester) {
		before := t.now()
		r := t.task(1)
		r.Due = before.Add(-1)
		t.insert(r)
		claimed := t.claim(ref(r))
		_, nodes, err := t.store.Nodes(t.Context())
		t.must(err)
		after := t.now()
		for _, moment := range []struct {
			name string
			at   int64
		}{
			{"create_time", int64(t.get(1).Created)},
			{"update_time", int64(t.get(1).Updated)},
			{"the claim's reading", int64(claimed.Reading.Time)},
			{"the nodes' reading", int64(nodes.Time)},
		} {
			if moment.at < int64(before) || moment.at > int64(after) {
				t.Errorf("%s is %d, want it within [%d, %d]", moment.name, moment.at, before, after)
			}
		}
	}},
}
