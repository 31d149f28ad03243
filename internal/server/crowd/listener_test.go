package crowd

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// Each connection reads as a server does: it reads on when it has dealt with what came.
func TestWhoHasSentLeastReadsNext(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, 100, 1<<20)
	t.Cleanup(func() { _ = l.Close() })
	l.turns = 1
	sends := func(bytes int) net.Conn {
		t.Helper()
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if _, err := client.Write(make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
		served, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = served.Close() })
		return served
	}
	first := sends(1)
	if _, err := first.Read(make([]byte, 4096)); err != nil { // and keeps its turn
		t.Fatal(err)
	}
	order := make(chan int)
	const short, long = 100, 3000
	for i, bytes := range []int{long, short, long, long} {
		served := sends(bytes)
		go func() {
			_, _ = served.Read(make([]byte, 4096))
			order <- bytes
			_ = served.Close()
		}()
		servertest.Eventually(t, "it waits for its turn", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.waiting["127.0.0.1"]) > i
		})
	}
	_ = first.Close()
	if got := []int{<-order, <-order, <-order, <-order}; !slices.Equal(got, []int{short, long, long, long}) {
		t.Errorf("they read in the order %v", got)
	}
}

// An honest client that waits for its turns has begun many short requests.
func TestWhoHasSentMostIsClosedFirst(t *testing.T) {
	t.Parallel()
	var begun []*conn
	begin := func(from string, connections int, head int64) {
		for range connections {
			begun = append(begun, &conn{from: from, head: head, since: time.Now()})
		}
	}
	begin("honest", 40, 300)
	begin("attacker", 3, 15<<10)
	first := slices.Clone(begun[40:])
	order := heaviest(begun, func(c *conn) int64 { return c.head })
	if got := order[:len(first)]; !slices.Equal(got, first) {
		t.Errorf("of %s, %s and %s", got[0].from, got[1].from, got[2].from)
	}
}
