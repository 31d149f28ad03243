package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

var viewTime = row.At(noon)

var viewRule = Rule{Alive: 2 * time.Second, Near: 2 * time.Second}

func node(number int, tags ...string) row.Node {
	return row.Node{Number: number, Token: fmt.Sprint("node-", number), Tags: tags, Heartbeat: viewTime}
}

func silent(n row.Node, d time.Duration) row.Node { n.Heartbeat = viewTime.Add(-d); return n }
func leaving(n row.Node) row.Node                 { n.Leaving = true; return n }

// owner returns the number of the only node that says the task is its own, or -1 when none does.
func owner(t interface{ Fatalf(string, ...any) }, nodes []row.Node, id int64, due row.Time, tag string) int {
	owner := -1
	for _, n := range nodes {
		if !NewView(n.Token, nodes, viewTime, viewRule).Mine(id, due, tag) {
			continue
		}
		if owner >= 0 {
			t.Fatalf("nodes %d and %d both say task %d is theirs", owner, n.Number, id)
		}
		owner = n.Number
	}
	return owner
}

func TestViewNamesTheNodeThatArms(t *testing.T) {
	t.Parallel()
	const soon, late = time.Second, time.Minute
	id := func(number int) int64 { return ids.NewSource(number, at(noon)).Next() }
	for _, tc := range []struct {
		name  string
		nodes []row.Node
		id    int64
		delay time.Duration
		want  []int // any of these
	}{
		{"due soon stays with its saver", []row.Node{node(3, "a"), node(5, "a"), node(9, "a")}, id(5), soon, []int{5}},
		{"due soon, the saver does not serve the tag", []row.Node{node(3, "a"), node(5, "b")}, id(5), soon, []int{3}},
		{"due soon, the saver is silent", []row.Node{node(3, "a"), silent(node(5, "a"), 2001*time.Millisecond)}, id(5),
			soon, []int{3}},
		{"due soon, the saver is leaving", []row.Node{node(3, "a"), leaving(node(5, "a"))}, id(5), soon, []int{3}},
		{"due soon, the saver holds no lease", []row.Node{node(3, "a")}, id(700), soon, []int{3}},
		{"due later is shared", []row.Node{node(3, "a"), node(5, "a")}, id(700), late, []int{3, 5}},
		{"a heartbeat of two seconds is alive", []row.Node{silent(node(3, "a"), 2*time.Second)}, id(3), late, []int{3}},
		{"a row of a plain insert", []row.Node{node(3, "a"), node(5, "a")}, 42, late, []int{3, 5}},
		{"no node serves the tag", []row.Node{node(3, "b")}, id(3), soon, []int{-1}},
		{"every node leaves", []row.Node{leaving(node(3, "a"))}, id(3), soon, []int{-1}},
		{"no nodes", nil, id(3), late, []int{-1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := owner(t, tc.nodes, tc.id, row.At(noon.Add(tc.delay)), "a"); !slices.Contains(tc.want, got) {
				t.Errorf("node %d arms the task, want one of %v", got, tc.want)
			}
		})
	}
}

func TestViewKeepsExactlyTwoPeriodsWithTheSaver(t *testing.T) {
	t.Parallel()
	nodes := []row.Node{node(3, "a"), node(5, "a")}
	source := ids.NewSource(5, at(noon))
	mine := func(delay time.Duration, rule Rule) (n int) {
		v := NewView("node-5", nodes, viewTime, rule)
		for range 100 {
			id := source.Next()
			saved, _, _ := ids.Split(id)
			if v.Mine(id, row.At(saved).Add(delay), "a") {
				n++
			}
		}
		return n
	}
	if n := mine(2*time.Second-time.Microsecond, viewRule); n != 100 {
		t.Errorf("just under two periods: the saver arms %d of 100, want all", n)
	}
	if n := mine(2*time.Second, viewRule); n == 0 || n == 100 {
		t.Errorf("two periods: the saver arms %d of 100, want a share", n)
	}
	if n := mine(2*time.Second, Rule{Alive: 2 * time.Second, Near: 3 * time.Second}); n != 100 {
		t.Errorf("two seconds of a longer period: the saver arms %d of 100, want all", n)
	}
}

func TestViewTellsEveryNodesShare(t *testing.T) {
	t.Parallel()
	nodes := []row.Node{
		node(9, "a"), node(3, "a", "b"), leaving(node(5, "a")), silent(node(7, "a"), 2001*time.Millisecond),
		node(8, "b"), node(4, "a"),
	}
	v := NewView("", nodes, viewTime, viewRule)
	for number, want := range map[int][2]int{3: {1, 3}, 4: {2, 3}, 9: {3, 3}, 5: {0, 3}, 7: {0, 3}, 8: {0, 3},
		6: {0, 3}} {
		if position, total := v.Share("a", number); position != want[0] || total != want[1] {
			t.Errorf("node %d has share %d of %d, want %v", number, position, total, want)
		}
	}
	if position, total := v.Share("c", 3); position != 0 || total != 0 {
		t.Errorf("share %d of %d of a tag that no node serves", position, total)
	}
}

func TestViewBelievesThatANodeIsGone(t *testing.T) {
	t.Parallel()
	nodes := []row.Node{node(3, "a"), node(5, "a")}
	rule := viewRule
	rule.Gone = func(n row.Node) bool { return n.Number == 5 }
	v := NewView("node-3", nodes, viewTime, rule)
	source := ids.NewSource(5, at(noon))
	for range 100 {
		if !v.Mine(source.Next(), viewTime.Add(time.Minute), "a") {
			t.Fatal("a node that is gone still has a share")
		}
	}
}

func TestExactlyOneNodeArmsATask(t *testing.T) {
	t.Parallel()
	tags := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, ids.LeasedNodes-1), 0, 12, rapid.ID).Draw(t, "numbers")
		serving := map[string]bool{}
		var nodes []row.Node
		for _, number := range numbers {
			n := node(number, rapid.SliceOfDistinct(rapid.SampledFrom(tags), rapid.ID).Draw(t, "tags")...)
			n = silent(n, time.Duration(rapid.IntRange(0, 4000).Draw(t, "silent"))*time.Millisecond)
			n.Leaving = rapid.Bool().Draw(t, "leaving")
			nodes = append(nodes, n)
			for _, tag := range n.Tags {
				serving[tag] = serving[tag] || !n.Leaving && viewTime.Sub(n.Heartbeat) <= 2*time.Second
			}
		}
		for range 20 {
			id := ids.NewSource(rapid.IntRange(0, 2*ids.LeasedNodes-1).Draw(t, "saver"), at(noon)).Next()
			due := viewTime.Add(time.Duration(rapid.IntRange(-1000, 10_000).Draw(t, "delay")) * time.Millisecond)
			tag := rapid.SampledFrom(tags).Draw(t, "tag")
			if got := owner(t, nodes, id, due, tag); (got >= 0) != serving[tag] {
				t.Fatalf("node %d arms the task; tag served: %t", got, serving[tag])
			}
		}
	})
}

func BenchmarkMine(b *testing.B) {
	var nodes []row.Node
	for n := range 16 {
		nodes = append(nodes, node(n, "a", "b", "c"))
	}
	v := NewView("node-3", nodes, viewTime, viewRule)
	id := ids.NewSource(3, at(noon)).Next()
	for b.Loop() {
		v.Mine(id, viewTime.Add(time.Minute), "a")
	}
}
