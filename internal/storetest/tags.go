package storetest

import (
	"maps"

	"github.com/delaytask/delaytask/internal/row"
)

var tagsTests = []test{
	{"No tag has a state at first, not even one with tasks", func(t *tester) {
		t.insert(t.task(1))
		t.tagStates(map[string]bool{})
	}},
	{"A tag keeps the state it was given last", func(t *tester) {
		for _, state := range []row.TagState{
			{Tag: "a", Paused: true}, {Tag: "A"}, {Tag: "b", Paused: true}, {Tag: "b"}, {Tag: "a", Paused: true},
		} {
			t.must(t.store.SetTag(t.Context(), state))
		}
		t.tagStates(map[string]bool{"a": true, "A": false, "b": false})
	}},
}

func (t *tester) tagStates(want map[string]bool) {
	t.Helper()
	states, err := t.store.Tags(t.Context())
	t.must(err)
	got := make(map[string]bool)
	for _, s := range states {
		got[s.Tag] = s.Paused
	}
	if !maps.Equal(got, want) || len(states) != len(want) {
		t.Fatalf("got %v, want %v", states, want)
	}
}
