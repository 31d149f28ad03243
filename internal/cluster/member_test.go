package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// board is a registry in memory, on the clock of the test's bubble.
type board struct {
	mu    sync.Mutex
	nodes map[int]row.Node
	fail  error         // what every call returns
	slow  time.Duration // how long a heartbeat travels in each direction
}

func newBoard(nodes ...row.Node) *board {
	b := &board{nodes: map[int]row.Node{}}
	for _, n := range nodes {
		b.nodes[n.Number] = n
	}
	return b
}

func (b *board) Nodes(context.Context) ([]row.Node, row.Reading, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.nodes)), row.Reading{Time: row.At(time.Now())}, b.fail
}

func (b *board) Join(_ context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	holder, held := b.nodes[n.Number]
	if held && holder.Token != n.Token && row.At(time.Now()).Sub(holder.Heartbeat) <= staleAfter {
		return false, b.fail
	}
	n.Heartbeat = row.At(time.Now())
	b.nodes[n.Number] = n
	return true, b.fail
}

func (b *board) Beat(_ context.Context, n row.Node) (bool, error) {
	time.Sleep(b.slow)
	defer time.Sleep(b.slow)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil || b.nodes[n.Number].Token != n.Token {
		return false, b.fail
	}
	n.Heartbeat = row.At(time.Now())
	b.nodes[n.Number] = n
	return true, nil
}

func (b *board) Leave(_ context.Context, tokens []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.nodes, func(_ int, n row.Node) bool { return slices.Contains(tokens, n.Token) })
	return b.fail
}

func (b *board) node(token string) (row.Node, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.nodes {
		if n.Token == token {
			return n, true
		}
	}
	return row.Node{}, false
}

func mustJoin(t *testing.T, b *board, p Process) *Member {
	t.Helper()
	m, err := Join(t.Context(), b, MemberConfig{Process: p, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// full has every number held by a node that was heard of d ago.
func full(d time.Duration) *board {
	b := newBoard()
	for number := range LeasedNodes {
		n := node(number)
		n.Heartbeat = row.At(time.Now().Add(-d))
		b.nodes[number] = n
	}
	return b
}

func TestMembersLeaseDifferentNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		seen := map[int]bool{}
		for range 50 {
			number, leased := mustJoin(t, b, NewProcess()).Number()
			if seen[number] || !leased || number < 0 || number >= LeasedNodes {
				t.Fatalf("number %d (leased %t), already taken: %t", number, leased, seen[number])
			}
			seen[number] = true
		}
	})
}

func TestJoinWaitsForASilentNodesLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := Join(t.Context(), full(LeaseTime), MemberConfig{Process: NewProcess()}); !errors.Is(err, ErrNoFreeNumber) {
			t.Fatalf("all held: %v, want ErrNoFreeNumber", err)
		}
		if _, leased := mustJoin(t, full(LeaseTime+time.Millisecond), NewProcess()).Number(); !leased {
			t.Fatal("all silent: no number was leased")
		}
	})
}

func TestJoinPrefersNumbersThatNobodyMayWantBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := full(time.Minute)
		delete(b.nodes, 77)
		if number, _ := mustJoin(t, b, NewProcess()).Number(); number != 77 {
			t.Fatalf("leased the number %d of a silent node, want 77", number)
		}
	})
}

func TestJoinRemovesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProcess()
		old, crashed, fresh := node(1), node(2), node(3)
		old.Heartbeat = row.At(time.Now().Add(-forgetAfter - time.Second))
		crashed.Host, crashed.PID, crashed.StartedAt = p.Host, p.PID, p.StartedAt-1 // our pid, used by another process before
		crashed.Heartbeat, fresh.Heartbeat = row.At(time.Now()), row.At(time.Now())
		b := newBoard(old, crashed, fresh)
		mustJoin(t, b, p)
		for token, want := range map[string]bool{old.Token: false, crashed.Token: p.Host == "", fresh.Token: true,
			p.Token: true} {
			if _, got := b.node(token); got != want {
				t.Errorf("%s is listed: %t, want %t", token, got, want)
			}
		}
	})
}

func TestNumberIsUsedOnlyWhileItsLeaseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := mustJoin(t, b, NewProcess())
		number, _ := m.Number()

		b.fail = errors.New("the database is away")
		time.Sleep(LeaseTime - time.Millisecond)
		if err := m.Beat(t.Context()); !errors.Is(err, b.fail) {
			t.Fatalf("Beat: %v, want the registry's error", err)
		}
		if got, leased := m.Number(); got != number || !leased {
			t.Fatalf("just before the end: %d (leased %t), want %d", got, leased, number)
		}
		time.Sleep(time.Millisecond)
		if got, leased := m.Number(); leased || got < LeasedNodes {
			t.Fatalf("after the end: %d (leased %t), want one that is never leased", got, leased)
		}

		b.fail = nil
		if err := m.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, leased := m.Number(); got != number || !leased {
			t.Fatalf("after the database came back: %d (leased %t), want %d again", got, leased, number)
		}
	})
}

func TestLeaseCountsFromBeforeTheHeartbeatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := mustJoin(t, b, NewProcess())
		b.slow = 2 * time.Second
		if err := m.Beat(t.Context()); err != nil { // returns 4 s after it was sent
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, leased := m.Number(); leased {
			t.Fatal("5 s after the heartbeat was sent the lease still holds")
		}
	})
}

func TestBeatTakesAnotherNumberWhenItsOwnIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := mustJoin(t, b, NewProcess())
		number, _ := m.Number()
		thief := node(number)
		thief.Heartbeat = row.At(time.Now())
		b.nodes[number] = thief
		if err := m.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, leased := m.Number(); got == number || !leased {
			t.Fatalf("number %d (leased %t), want another than %d", got, leased, number)
		}
		if b.nodes[number].Token != thief.Token {
			t.Error("the other node lost its number")
		}
	})
}

func TestANodeThatHasLostItsNumberCarriesItNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		m := mustJoin(t, b, NewProcess())
		for number := range LeasedNodes {
			other := node(number)
			other.Heartbeat = row.At(time.Now())
			b.nodes[number] = other
		}
		if err := m.Beat(t.Context()); !errors.Is(err, ErrNoFreeNumber) {
			t.Fatalf("got %v, want that no number is free", err)
		}
		if number, leased := m.Number(); leased || number < LeasedNodes {
			t.Errorf("it goes on with number %d (leased %t), which another node has", number, leased)
		}
	})
}

func TestBeatTellsTagsAndLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		p := NewProcess()
		m := mustJoin(t, b, p)
		m.SetTags([]string{"b", "a"})
		m.SetLeaving()
		time.Sleep(time.Second)
		if err := m.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, _ := b.node(p.Token)
		if !slices.Equal(n.Tags, []string{"a", "b"}) || !n.Leaving || n.Heartbeat != row.At(time.Now()) || n.Version != "test" {
			t.Fatalf("the registry holds %+v", n)
		}
	})
}

func TestLeaveIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.slow = time.Second
		p := NewProcess()
		m := mustJoin(t, b, p)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := m.Beat(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // the heartbeat is on its way
		if err := m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := m.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, listed := b.node(p.Token); listed {
			t.Error("the node is listed after it left")
		}
		if _, leased := m.Number(); leased {
			t.Error("the number is used after it was given back")
		}
	})
}
