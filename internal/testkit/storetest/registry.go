package storetest

import (
	"reflect"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var nodesTests = []test{
	{"A node that joins, also again, is there with a fresh heartbeat", func(t *tester) {
		n := node(7, "token-a")
		for _, n.Tags = range [][]string{nil, {"A", "a", "b.c"}} {
			early := t.now()
			t.joins(n, time.Hour, true)
			t.fresh(n, early)
		}
	}},
	{"Nodes come by number", func(t *tester) {
		for _, number := range []int{300, 2, 1023, 0} {
			t.joins(node(number, string(rune('a'+number%26))), time.Hour, true)
		}
		var numbers []int
		for _, n := range t.nodes() {
			numbers = append(numbers, n.Number)
		}
		if want := []int{0, 2, 300, 1023}; !slices.Equal(numbers, want) {
			t.Fatalf("got %v, want %v", numbers, want)
		}
	}},
	{"A number is taken while its heartbeat is fresh", func(t *tester) {
		t.joins(node(1, "first"), time.Hour, true)
		before := t.nodes()
		t.joins(node(1, "second"), time.Hour, false)
		if after := t.nodes(); !reflect.DeepEqual(after, before) {
			t.Fatalf("the refused node changed %+v to %+v", before, after)
		}
		t.joins(node(2, "second"), time.Hour, true)
	}},
	{"A number is free once its heartbeat is stale", func(t *tester) {
		t.joins(node(1, "first"), time.Hour, true)
		t.waitUntilAfter(t.nodes()[0].Heartbeat.Add(5 * time.Millisecond))
		second := node(1, "second")
		second.Name = "other"
		early := t.now()
		t.joins(second, 5*time.Millisecond, true)
		nodes := t.fresh(second, early)
		t.beats(node(1, "first"), false)
		if got := t.nodes(); !reflect.DeepEqual(got, nodes) {
			t.Fatalf("the node that lost its number changed %+v to %+v", nodes, got)
		}
		t.beats(second, true)
	}},
	{"A beat writes the whole row, also twice in a moment", func(t *tester) {
		n := node(1, "first")
		t.beats(n, false) // it has not joined
		if nodes := t.nodes(); len(nodes) != 0 {
			t.Fatalf("the beat made %+v", nodes)
		}
		t.joins(n, time.Hour, true)
		n.Tags, n.Leaving, n.Address, n.Version, n.Name = []string{"z"}, true, "10.0.0.9:80", "v2", "renamed"
		t.waitUntilAfter(t.nodes()[0].Heartbeat)
		early := t.now()
		for range 20 {
			t.beats(n, true)
		}
		t.fresh(n, early)
	}},
	{"The members differ when a node comes, goes, says something else or falls silent, and not by a heartbeat",
		func(t *tester) {
			seen := map[int64]string{}
			is := func(news bool, after string, fresh time.Duration) {
				t.Helper()
				cluster, err := t.store.Cluster(t.Context(), fresh)
				t.must(err)
				if before, known := seen[cluster.Members]; known == news {
					t.Fatalf("after %s: members %d, known %t, as after %q", after, cluster.Members, known, before)
				}
				seen[cluster.Members] = after
				t.within("the reading", cluster.Reading.Time, t.start, t.now())
			}
			first, second := node(1, "first"), node(2, "second")
			is(true, "nothing", time.Hour)
			t.joins(first, time.Hour, true)
			is(true, "a join", time.Hour)
			t.joins(second, time.Hour, true)
			is(true, "another one", time.Hour)
			t.waitUntilAfter(t.nodes()[1].Heartbeat)
			t.beats(first, true)
			is(false, "a heartbeat", time.Hour)
			for what, change := range map[string]func(*row.Node){
				"name": func(n *row.Node) { n.Name = "other" }, "tags": func(n *row.Node) { n.Tags = n.Tags[:2] },
				"leaving": func(n *row.Node) { n.Leaving = true }, "address": func(n *row.Node) { n.Address = "" },
				"declares": func(n *row.Node) { n.Declares = row.Declares{Token: "second", Owner: "o"} },
			} {
				n := second
				change(&n)
				t.beats(n, true)
				is(true, what, time.Hour)
			}
			t.beats(second, true)
			is(false, "what it was", time.Hour)
			t.waitUntilAfter(t.nodes()[1].Heartbeat.Add(5 * time.Millisecond))
			is(true, "silence", 5*time.Millisecond)
			t.must(t.store.Leave(t.Context(), []string{"second"}))
			is(false, "it has left", time.Hour)
		}},
	{"Nodes that leave are gone, the others stay", func(t *tester) {
		for i, token := range []string{"a", "b", "A"} {
			t.joins(node(i, token), time.Hour, true)
		}
		t.must(t.store.Leave(t.Context(), []string{"a", "none"}))
		if nodes := t.nodes(); len(nodes) != 2 || nodes[0].Token != "b" || nodes[1].Token != "A" {
			t.Fatalf("got %+v, want b and A", nodes)
		}
		t.beats(node(0, "a"), false)
		t.joins(node(0, "c"), time.Hour, true)
	}},
}

func node(number int, token string) row.Node {
	return row.Node{
		Number: number, Token: token, Name: "worker Zoë", Host: "host-1/4026531836", PID: 4194304, StartedAt: 1 << 40,
		Address: "[2001:db8::1]:8080", Version: "v1.2.3-rc.1+meta", Tags: []string{"A", "a", "b.c"},
	}
}

func (t *tester) nodes() []row.Node {
	t.Helper()
	nodes, _, err := t.store.Nodes(t.Context())
	t.must(err)
	return nodes
}

func (t *tester) joins(n row.Node, staleAfter time.Duration, want bool) {
	t.Helper()
	joined, err := t.store.Join(t.Context(), n, staleAfter)
	t.must(err)
	if joined != want {
		t.Fatalf("node %d as %s: joined %v, want %v", n.Number, n.Token, joined, want)
	}
}

func (t *tester) beats(n row.Node, want bool) {
	t.Helper()
	kept, err := t.store.Beat(t.Context(), n)
	t.must(err)
	if kept != want {
		t.Fatalf("node %d as %s: number kept %v, want %v", n.Number, n.Token, kept, want)
	}
}

// fresh wants that node alone, with a heartbeat since the moment, and returns all nodes.
func (t *tester) fresh(want row.Node, early row.Time) []row.Node {
	t.Helper()
	nodes := t.nodes()
	if len(nodes) != 1 {
		t.Fatalf("got %d nodes, want one", len(nodes))
	}
	got := nodes[0]
	t.within("the heartbeat", got.Heartbeat, early, t.now())
	want.Heartbeat = got.Heartbeat
	if len(got.Tags)+len(want.Tags) == 0 {
		want.Tags = got.Tags
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	return nodes
}

var tagsTests = []test{
	{"A tag has no state at first, and keeps the one it was given last", func(t *tester) {
		t.insert(t.task(1))
		t.tagStates()
		for _, state := range []row.TagState{
			{Tag: "a", Paused: true}, {Tag: "A"}, {Tag: "b", Paused: true, Reason: "x"}, {Tag: "b"},
			{Tag: "a", Paused: true, Reason: "déjà vu"},
		} {
			t.must(t.store.SetTag(t.Context(), state))
		}
		t.tagStates(row.TagState{Tag: "A"}, row.TagState{Tag: "a", Paused: true, Reason: "déjà vu"},
			row.TagState{Tag: "b"})
	}},
}

func (t *tester) tagStates(want ...row.TagState) {
	t.Helper()
	states, _, err := t.store.Tags(t.Context())
	t.must(err)
	cluster, err := t.store.Cluster(t.Context(), time.Hour)
	t.must(err)
	if !slices.Equal(states, want) || !slices.Equal(cluster.Tags, want) {
		t.Fatalf("got %+v and %+v, want %+v", states, cluster.Tags, want)
	}
}
