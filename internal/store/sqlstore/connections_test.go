package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// TestEveryHostCanHaveAConnection takes and gives in random order.
func TestEveryHostCanHaveAConnection(t *testing.T) {
	for most := crowded; most <= inAll; most++ {
		c := newConnections(nil, mysqlDialect, most)
		var used []use
		for range 2000 {
			if u := use(rand.N(int(uses))); rand.N(3) > 0 {
				if c.mayTake(u) && c.inUse[u] < atOnce[u] {
					c.inUse[u]++
					used = append(used, u)
				}
			} else if len(used) > 0 {
				i := rand.N(len(used))
				c.inUse[used[i]]--
				used[i] = used[len(used)-1]
				used = used[:len(used)-1]
			}
			if len(used) > most {
				t.Fatalf("%d are in use, want at most %d", len(used), most)
			}
			var has [uses]bool
			for _, u := range used {
				has[hostOf(u, most)] = true
			}
			for u := range uses {
				if !has[hostOf(u, most)] && !c.mayTake(u) {
					t.Fatalf("of at most %d connections %v are in use: kind %d gets none", most, c.inUse, u)
				}
			}
		}
	}
	c := newConnections(nil, mysqlDialect, inAll)
	for u, n := range atOnce {
		for range n {
			if !c.mayTake(use(u)) {
				t.Fatalf("beside %v kind %d gets no connection", c.inUse, u)
			}
			c.inUse[u]++
		}
	}
}

// together lets n writes use connections at the same time.
func together(t *testing.T, l *lane, n int) {
	t.Helper()
	var arrived, done sync.WaitGroup
	arrived.Add(n)
	for range n {
		done.Go(func() {
			err := l.do(t.Context(), "test", func(ctx context.Context, conn *sql.Conn) error {
				arrived.Done()
				arrived.Wait()
				return run("DO 1")(ctx, conn)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
}

func TestConnectionsThatNoWriteNeedsAreClosed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d)
		s := New(db, MySQL)
		defer s.Close(context.Background())
		c, l := s.connections, s.lanes[saves]
		c.tempo.fresh = time.Time{} // the start is over
		together(t, l, atOnce[saves])
		if len(c.idle) != atOnce[saves] {
			t.Fatalf("%d connections are idle, want %d", len(c.idle), atOnce[saves])
		}
		first := laneConnection(t, s.lanes[beats])
		if again := laneConnection(t, s.lanes[claims]); again != first {
			t.Errorf("connection %d was used last, and then %d", first, again)
		}
		for i := range c.idle {
			c.idle[i].used = time.Now().Add(-spareFor)
		}
		if last := laneConnection(t, l); last != first || len(c.idle) != 1 {
			t.Errorf("%d connections are open, want the one that was used last", len(c.idle))
		}
	})
}

// TestWritesShareWhatAFullServerHasLeftThem leaves two connections to a process that wants five.
func TestWritesShareWhatAFullServerHasLeftThem(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			db, _ := connect(t, dbtest.NewDisposable(t, kind).Database(t))
			s := New(db, MySQL)
			defer s.Close(context.Background())
			together(t, s.lanes[saves], 2)
			takeRest(t, db)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					for range 20 {
						err := s.lanes[saves].write(t.Context(), "test", clause{sql: "DO SLEEP(0.002)"})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			// Reads have none, so none of them gives one back.
			for range 2 {
				all.Go(func() {
					if _, err := readClock(t.Context(), mysqlDialect, s.db); !isFull(err) {
						t.Errorf("got %v, want that the server is full", err)
					}
				})
			}
			all.Wait()
		})
	}
}

// takeRest takes all connections that the server has left.
func takeRest(t *testing.T, db *sqlx.DB) {
	t.Helper()
	mustExec(t, db, "SET GLOBAL max_connections = 10")
	for {
		conn, err := db.Conn(t.Context())
		if isFull(err) {
			return
		}
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func TestReadsKeepToTheirProcessesShareOfTheConnections(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d)
		s := New(db, MySQL)
		defer s.Close(context.Background())
		together(t, s.lanes[saves], 2)
		s.db.bound(3)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				must(t, s.db.read(t.Context(), func(conn *sql.Conn) error {
					return run("DO SLEEP(0.5)")(t.Context(), conn)
				}))
				if open := db.Stats().OpenConnections; open > 3 {
					t.Errorf("%d connections are open, want at most 3", open)
				}
			})
		}
		all.Wait()
	})
}

func TestALateHeartbeatMakesNoShareLarger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers(nil)
		s.note(answer{identity{most: 500}, time.Now()})
		for _, c := range []struct {
			after time.Duration
			live  int
			want  int
		}{{0, 50, 8}, {time.Second, 100, 4}, {30 * time.Second, 20, 4}, {sharedFor, 20, 20}} {
			time.Sleep(c.after)
			if got := s.share(c.live); got != c.want {
				t.Errorf("%v later, of %d live nodes: %d connections, want %d", c.after, c.live, got, c.want)
			}
		}
	})
}

func TestNodesShareTheConnectionsOfAServer(t *testing.T) {
	f := func(live, server, want int) {
		t.Helper()
		s := New(sqlx.NewDb(sql.OpenDB(nil), "mysql"), MySQL)
		s.servers.note(answer{identity{most: server}, time.Now()})
		s.shareConnections(live)
		if got := s.connections.most; got != want {
			t.Errorf("%d nodes of a server with %d connections have %d each, want %d", live, server, got, want)
		}
	}
	f(0, 0, inAll)
	f(1, 0, inAll)
	f(0, 151, inAll)
	f(1, 151, inAll)
	f(10, 151, 10)
	f(30, 500, 11)
	f(100, 500, crowded)
	f(1, 10, 6)
}
