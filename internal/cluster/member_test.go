package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
)

// board is a registry on the clock of the test's bubble.
type board struct {
	*memstore.Store
	fail error         // what every heartbeat returns
	held error         // what the removal of nodes returns
	slow time.Duration // how long it travels in each direction
}

func (b *board) Beat(ctx context.Context, n row.Node) (bool, error) {
	time.Sleep(b.slow)
	defer time.Sleep(b.slow)
	if b.fail != nil {
		return false, b.fail
	}
	return b.Store.Beat(ctx, n)
}

func (b *board) Leave(ctx context.Context, tokens []string) error {
	if b.held != nil {
		return b.held
	}
	return b.Store.Leave(ctx, tokens)
}

// listed is the node with the token, as the registry holds it.
func (b *board) listed(t *testing.T, token string) (row.Node, bool) {
	t.Helper()
	nodes, _, err := b.Nodes(t.Context())
	mustOK(t, err)
	at := slices.IndexFunc(nodes, func(n row.Node) bool { return n.Token == token })
	if at < 0 {
		return row.Node{}, false
	}
	return nodes[at], true
}

// newBoard lists nodes whose heartbeat is from just now.
func newBoard(t *testing.T, nodes ...row.Node) *board {
	t.Helper()
	b := &board{Store: memstore.New()}
	b.take(t, nodes...)
	return b
}

// take gives nodes their numbers, also from other holders.
func (b *board) take(t *testing.T, nodes ...row.Node) {
	t.Helper()
	for _, n := range nodes {
		if _, err := b.Join(t.Context(), n, -time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

// everyNumber is held by a node.
func everyNumber() (nodes []row.Node) {
	for number := range ids.LeasedNodes {
		nodes = append(nodes, node(number))
	}
	return nodes
}

// spare makes a source of ids whose own node number is never leased.
func spare() *ids.Source { return ids.NewSource(ids.RandomNode(), time.Now) }

func mustJoin(t *testing.T, b *board, p Process) *Member {
	t.Helper()
	m, err := Join(t.Context(), b, MemberConfig{Process: p, Version: "test", IDs: spare()})
	mustOK(t, err)
	return m
}

func TestMembersLeaseDifferentNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		seen := map[int]bool{}
		for range 50 {
			number, leased := mustJoin(t, b, NewProcess()).ids.Node()
			if seen[number] || !leased || number < 0 || number >= ids.LeasedNodes {
				t.Fatalf("number %d (leased %t), already taken: %t", number, leased, seen[number])
			}
			seen[number] = true
		}
	})
}

func TestJoinWaitsForASilentNodesLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, everyNumber()...)
		time.Sleep(LeaseTime)
		cfg := MemberConfig{Process: NewProcess(), IDs: spare()}
		if _, err := Join(t.Context(), b, cfg); !errors.Is(err, ErrNoFreeNumber) {
			t.Fatalf("all held: %v, want ErrNoFreeNumber", err)
		}
		time.Sleep(time.Millisecond)
		if _, leased := mustJoin(t, b, NewProcess()).ids.Node(); !leased {
			t.Fatal("all silent: no number was leased")
		}
	})
}

func TestJoinPrefersNumbersThatWereNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, slices.Delete(everyNumber(), 77, 78)...)
		time.Sleep(time.Minute)
		if number, _ := mustJoin(t, b, NewProcess()).ids.Node(); number != 77 {
			t.Fatalf("leased the number %d of a silent node, want 77", number)
		}
	})
}

func TestJoinRemovesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProcess()
		old, crashed, fresh := node(1), node(2), node(3)
		// our pid, used by another process before
		crashed.Host, crashed.PID, crashed.StartedAt = p.Host, p.PID, p.StartedAt-1
		b := newBoard(t, old)
		time.Sleep(forgetAfter + time.Second)
		b.take(t, crashed, fresh)
		mustJoin(t, b, p)
		for token, want := range map[string]bool{old.Token: false, crashed.Token: p.Host == "", fresh.Token: true,
			p.Token: true} {
			if _, got := b.listed(t, token); got != want {
				t.Errorf("%s is listed: %t, want %t", token, got, want)
			}
		}
	})
}

// A transaction may hold the row of a dead node for long, as a commit that a group of servers does not end.
func TestJoinLeavesTheDeadWhoseRowsAreLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, slices.Delete(everyNumber(), 77, 78)...)
		time.Sleep(forgetAfter + time.Second)
		b.held = &row.Error{Class: row.ClassLocked, Op: "leave as a node", Err: errors.New("locked")}
		if number, leased := mustJoin(t, b, NewProcess()).ids.Node(); number != 77 || !leased {
			t.Errorf("the number is %d (leased %t), want 77", number, leased)
		}
		b.held = &row.Error{Class: row.ClassOperator, Op: "leave as a node", Err: errors.New("denied")}
		if _, err := Join(t.Context(), b, MemberConfig{Process: NewProcess(), IDs: spare()}); !errors.Is(err, b.held) {
			t.Errorf("got %v, want the error", err)
		}
	})
}

func TestNumberIsUsedOnlyWhileItsLeaseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		m := mustJoin(t, b, NewProcess())
		number, _ := m.ids.Node()

		b.fail = errors.New("the database is away")
		time.Sleep(LeaseTime - time.Millisecond)
		if err := m.Beat(t.Context()); !errors.Is(err, b.fail) {
			t.Fatalf("Beat: %v, want the registry's error", err)
		}
		if got, leased := m.ids.Node(); got != number || !leased {
			t.Fatalf("just before the end: %d (leased %t), want %d", got, leased, number)
		}
		time.Sleep(time.Millisecond)
		if got, leased := m.ids.Node(); leased || got < ids.LeasedNodes {
			t.Fatalf("after the end: %d (leased %t), want one that is never leased", got, leased)
		}

		b.fail = nil
		mustOK(t, m.Beat(t.Context()))
		if got, leased := m.ids.Node(); got != number || !leased {
			t.Fatalf("after the database came back: %d (leased %t), want %d again", got, leased, number)
		}
	})
}

func TestLeaseCountsFromBeforeTheHeartbeatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		m := mustJoin(t, b, NewProcess())
		b.slow = 2 * time.Second
		mustOK(t, m.Beat(t.Context()))
		time.Sleep(time.Second)
		if _, leased := m.ids.Node(); leased {
			t.Fatal("5 s after the heartbeat was sent the lease still holds")
		}
	})
}

func TestBeatTakesAnotherNumberWhenItsOwnIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		m := mustJoin(t, b, NewProcess())
		number, _ := m.ids.Node()
		thief := node(number)
		b.take(t, thief)
		mustOK(t, m.Beat(t.Context()))
		if got, leased := m.ids.Node(); got == number || !leased {
			t.Fatalf("number %d (leased %t), want another than %d", got, leased, number)
		}
		if _, listed := b.listed(t, thief.Token); !listed {
			t.Error("the other node lost its number")
		}
	})
}

func TestANodeThatHasLostItsNumberCarriesItNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		m := mustJoin(t, b, NewProcess())
		b.take(t, everyNumber()...)
		if err := m.Beat(t.Context()); !errors.Is(err, ErrNoFreeNumber) {
			t.Fatalf("got %v, want that no number is free", err)
		}
		if number, leased := m.ids.Node(); leased || number < ids.LeasedNodes {
			t.Errorf("it goes on with number %d (leased %t), which another node has", number, leased)
		}
	})
}

func TestBeatTellsTagsAndLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		p := NewProcess()
		m := mustJoin(t, b, p)
		m.SetTags([]string{"b", "a"})
		m.SetLeaving()
		time.Sleep(time.Second)
		mustOK(t, m.Beat(t.Context()))
		n, _ := b.listed(t, p.Token)
		if !slices.Equal(n.Tags, []string{"a", "b"}) || !n.Leaving || n.Heartbeat != row.At(time.Now()) ||
			n.Version != "test" {
			t.Fatalf("the registry holds %+v", n)
		}
	})
}

func TestLeaveIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
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
		mustOK(t, m.Leave(t.Context()))
		wg.Wait()
		mustOK(t, m.Beat(t.Context()))
		if _, listed := b.listed(t, p.Token); listed {
			t.Error("the node is listed after it left")
		}
		if _, leased := m.ids.Node(); leased {
			t.Error("the number is used after it was given back")
		}
	})
}

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
