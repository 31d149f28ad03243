package storetest

import (
	"reflect"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var nodesTests = []test{
	{"A node that joined is there, with a fresh heartbeat", func(t *tester) {
		early := t.now()
		n := node(7, "token-a")
		t.joins(n, time.Hour, true)
		nodes := t.nodes()
		late := t.now()
		if len(nodes) != 1 {
			t.Fatalf("got %d nodes, want one", len(nodes))
		}
		t.fresh(nodes[0], early, late)
		n.Heartbeat = nodes[0].Heartbeat
		if !reflect.DeepEqual(nodes[0], n) {
			t.Fatalf("got %+v, want %+v", nodes[0], n)
		}
	}},
	{"Nodes come by number", func(t *tester) {
		for _, number := range []int{300, 2, 1023, 0} {
			t.joins(node(number, string(rune('a'+number%26))), time.Hour, true)
		}
		nodes := t.nodes()
		if len(nodes) != 4 || nodes[0].Number != 0 || nodes[1].Number != 2 || nodes[2].Number != 300 || nodes[3].Number != 1023 {
			t.Fatalf("got %+v, want 0, 2, 300, 1023", nodes)
		}
	}},
	{"A number is held while its heartbeat is fresh", func(t *tester) {
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
		nodes := t.nodes()
		if len(nodes) != 1 || nodes[0].Token != "second" || nodes[0].Name != "other" {
			t.Fatalf("got %+v, want only the second node", nodes)
		}
		t.fresh(nodes[0], early, t.now())
		t.beats(node(1, "first"), false)
		if got := t.nodes(); !reflect.DeepEqual(got, nodes) {
			t.Fatalf("the node that lost its number changed %+v to %+v", nodes, got)
		}
		t.beats(second, true)
	}},
	{"A node may join twice", func(t *tester) {
		t.joins(node(1, "first"), time.Hour, true)
		t.joins(node(1, "first"), time.Hour, true)
		if nodes := t.nodes(); len(nodes) != 1 {
			t.Fatalf("got %d nodes, want one", len(nodes))
		}
	}},
	{"A beat writes the whole row", func(t *tester) {
		t.joins(node(1, "first"), time.Hour, true)
		n := node(1, "first")
		n.Tags, n.Leaving, n.Address, n.Version, n.Name = []string{"z"}, true, "10.0.0.9:80", "v2", "renamed"
		t.waitUntilAfter(t.nodes()[0].Heartbeat)
		early := t.now()
		t.beats(n, true)
		got := t.nodes()[0]
		t.fresh(got, early, t.now())
		n.Heartbeat = got.Heartbeat
		if !reflect.DeepEqual(got, n) {
			t.Fatalf("got %+v, want %+v", got, n)
		}
	}},
	{"Beats that follow at once all count", func(t *tester) {
		n := node(1, "first")
		t.joins(n, time.Hour, true)
		for range 50 {
			t.beats(n, true)
		}
	}},
	{"A node that never joined has no beat", func(t *tester) {
		t.beats(node(1, "first"), false)
		if nodes := t.nodes(); len(nodes) != 0 {
			t.Fatalf("the beat made %+v", nodes)
		}
	}},
	{"A node without tags serves none", func(t *tester) {
		n := node(1, "first")
		n.Tags = nil
		t.joins(n, time.Hour, true)
		if tags := t.nodes()[0].Tags; len(tags) != 0 {
			t.Fatalf("got tags %q", tags)
		}
	}},
	{"Nodes that leave are gone, the others stay", func(t *tester) {
		for i, token := range []string{"a", "b", "A"} {
			t.joins(node(i, token), time.Hour, true)
		}
		t.must(t.store.Leave(t.Context(), []string{"a", "none"}))
		if nodes := t.nodes(); len(nodes) != 2 || nodes[0].Token != "b" || nodes[1].Token != "A" {
			t.Fatalf("got %+v, want b and A", nodes)
		}
		t.must(t.store.Leave(t.Context(), nil))
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
	held, err := t.store.Beat(t.Context(), n)
	t.must(err)
	if held != want {
		t.Fatalf("node %d as %s: number held %v, want %v", n.Number, n.Token, held, want)
	}
}

func (t *tester) fresh(n row.Node, early, late row.Time) {
	t.Helper()
	if n.Heartbeat < early || n.Heartbeat > late {
		t.Fatalf("heartbeat %v, want it within [%v, %v]", n.Heartbeat, early, late)
	}
}
