package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// An address that has moved, by DNS or in a proxy, while the server that it led to stays up. Both servers have a
// database of that name.
func TestWritesFollowAnAddressThatMoves(t *testing.T) {
	t.Parallel() // it waits for a server of its own
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			after := dbtest.New(t, kind)
			before := namesake(t, dbtest.NewDisposable(t, kind).Database(t), after)
			old, _ := migrated(t, before)
			recent, _ := migrated(t, after)
			address := listen(t, configOf(t, before).Addr)
			db, _ := connect(t, reached(t, after, address.listener.Addr().String()))
			s := New(db, MySQL)
			defer s.Close(context.Background())
			together(t, s.lanes[saves], atOnce[saves])
			for id := range int64(5) {
				saveOne(t, s, id+1)
			}
			address.moveTo(configOf(t, after).Addr)
			saveOne(t, s, 6)
			if reading := now(t, s); reading.Other != "" {
				t.Errorf("before any connection leads elsewhere, %s is another database", reading.Other)
			}
			db.SetMaxIdleConns(-1) // no idle ones: only the connections of writes stay
			now(t, s)
			saveOne(t, s, 7)
			for n, want := range map[*sqlx.DB]string{old: "1 2 3 4 5 6", recent: "7"} {
				if got := savedIDs(t, n); got != want {
					t.Errorf("saved are %q, want %q", got, want)
				}
			}
			reading := now(t, s)
			if reading.Other == "" || reading.Other == reading.Server {
				t.Errorf("the server before is still up and writable, and the reading is %+v", reading)
			}
		})
	}
}

// As behind a balancer that has moved an address: what is sent on open connections has no answer.
func TestConnectionsThatLeadNowhereAreGivenUp(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		migrated(t, d)
		address := listen(t, configOf(t, d).Addr)
		db, _ := connect(t, reached(t, d, address.listener.Addr().String()))
		s := New(db, MySQL)
		defer s.Close(context.Background())
		size := int64(atOnce[saves])
		together(t, s.lanes[saves], atOnce[saves])
		var idle [6]*sql.Conn
		for i := range idle {
			var err error
			idle[i], err = db.Conn(t.Context())
			must(t, err)
		}
		for _, conn := range idle {
			must(t, conn.Close())
		}
		address.silence()
		var asked atomic.Int64
		u := s.connections.unanswered
		ask := u.ask
		u.ask = func(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
			asked.Add(1)
			return ask(ctx, f)
		}
		err := s.Insert(t.Context(), nil, []row.Row{{ID: size + 1}})
		if row.ClassOf(err) != row.ClassUnknown || !errors.Is(err, errSilent) {
			t.Errorf("a save on a connection without answers ended with %v", err)
		}
		if n := asked.Load(); n > 2 { // on a connection from before, and on a new one
			t.Errorf("%d questions found the silence", n)
		}
		for id := range size {
			saveOne(t, s, size+2+id)
		}
		now(t, s)
	})
}

func TestAWriteThatBeginsWhileASilenceIsFoundIsGivenUp(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		address := listen(t, configOf(t, d).Addr)
		db, _ := connect(t, reached(t, d, address.listener.Addr().String()))
		s := New(db, MySQL)
		defer s.Close(context.Background())
		l := s.lanes[chores] // has one connection, so that no idle one tells of the silence
		must(t, l.write(t.Context(), "test", clause{sql: "DO 1"}))
		ctx := store.WithDeparture(t.Context(), store.Departure{Waits: func() {}, Sends: func() error {
			address.silence()
			l.servers.silent(time.Now())
			return nil
		}})
		if err := l.write(ctx, "test", clause{sql: "DO 1"}); !errors.Is(err, errSilent) {
			t.Errorf("the write ended with %v", err)
		}
	})
}

func TestAServerThatStallsIsWaitedFor(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		address := listen(t, configOf(t, d).Addr)
		db, _ := connect(t, reached(t, d, address.listener.Addr().String()))
		s := New(db, MySQL)
		defer s.Close(context.Background())
		u, l := s.connections.unanswered, s.lanes[saves]
		must(t, l.write(t.Context(), "test", clause{sql: "DO 1"}))
		must(t, u.askIn(t.Context(), echo))
		asked, ask := make(chan struct{}, 100), u.ask
		u.ask = func(ctx context.Context, f func(context.Context, *sql.Conn) error) error {
			defer func() { asked <- struct{}{} }()
			return ask(ctx, f)
		}
		ended := make(chan error, 1)
		ctx := store.WithDeparture(t.Context(), store.Departure{Waits: func() {}, Sends: func() error {
			address.stalled.Lock()
			return nil
		}})
		go func() { ended <- l.write(ctx, "test", clause{sql: "DO 1"}) }()
		for range 2 { // on a connection from before, and on a new one
			select {
			case <-asked:
			case err := <-ended:
				t.Fatalf("the write has ended: %v", err)
			}
		}
		address.stalled.Unlock()
		must(t, <-ended)
	})
}

func TestReservedConnectionsAreRenewedByAge(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d)
		l := newLane(newConnections(&pool{DB: db}, mysqlDialect, inAll), saves, 1)
		defer func() { _ = l.close(t.Context()) }()
		first := laneConnection(t, l)
		if again := laneConnection(t, l); again != first {
			t.Errorf("connection %d was renewed at once, by %d", first, again)
		}
		l.life = 0
		laneConnection(t, l) // is still the first
		l.idle[0].until = time.Now()
		if again := laneConnection(t, l); again == first {
			t.Errorf("connection %d was not renewed when its time was over", first)
		}
	})
}

// Members of one cluster are one database, however many answer in turn.
func TestMembersOfAClusterAreOneDatabase(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := connect(t, d.Spread())
		s := New(db, MySQL)
		defer s.Close(context.Background())
		db.SetMaxIdleConns(-1)
		for range 6 {
			if reading := now(t, s); reading.Other != "" {
				t.Errorf("%s is another database than %s", reading.Other, reading.Server)
			}
		}
		if moves := s.servers.moves(); moves != 0 {
			t.Errorf("the address has moved %d times", moves)
		}
	})
}

func TestAPrimaryThatWasDemotedIsNoSecondDatabase(t *testing.T) {
	s := newServers(nil)
	a, b := identity{"a", "A", true, "a", 0}, identity{"b", "B", true, "b", 0}
	s.note(answer{a, time.Now()})
	if s.note(answer{b, time.Now()}) {
		t.Error("another database counts as the current one")
	}
	s.current = "B"
	s.note(answer{a, time.Now()})
	s.note(answer{b, time.Now()})
	if s.other() != "a" {
		t.Errorf("%q is another database, want a", s.other())
	}
	a.writable = false
	s.note(answer{a, time.Now()})
	if s.other() != "" {
		t.Errorf("%q was demoted and counts as another database", s.other())
	}
}

func saveOne(t *testing.T, s *Store, id int64) {
	t.Helper()
	must(t, s.Insert(t.Context(), nil, []row.Row{{ID: id, Tag: "a", Expected: plannedTime, Due: plannedTime}}))
}

func savedIDs(t *testing.T, db *sqlx.DB) string {
	t.Helper()
	var ids []string
	must(t, db.Select(&ids, "SELECT id FROM "+table+" ORDER BY id"))
	return strings.Join(ids, " ")
}

func now(t *testing.T, s *Store) row.Reading {
	t.Helper()
	reading, err := s.Now(t.Context())
	must(t, err)
	return reading
}

func configOf(t *testing.T, d dbtest.Database) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	must(t, err)
	return cfg
}

// address forwards connections. Those that are open stay when it moves.
type address struct {
	listener net.Listener
	to       atomic.Value // string
	silenced atomic.Int64 // how often
	stalled  sync.RWMutex // locked while nothing is forwarded
}

// silence lets connections that are open lead nowhere, while nothing ends them.
func (a *address) silence() { a.silenced.Add(1) }

// path is a direction of a connection, until that is silenced.
type path struct {
	io.Writer
	of    *address
	since int64
}

func (p path) Write(b []byte) (int, error) {
	p.of.stalled.RLock()
	defer p.of.stalled.RUnlock()
	if p.of.silenced.Load() != p.since {
		return len(b), nil
	}
	return p.Writer.Write(b)
}

func listen(t *testing.T, to string) *address {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	a := &address{listener: listener}
	a.moveTo(to)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go a.forward(from)
		}
	}()
	return a
}

func (a *address) moveTo(to string) { a.to.Store(to) }

func (a *address) forward(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", a.to.Load().(string))
	if err != nil {
		return
	}
	defer to.Close()
	since := a.silenced.Load()
	go func() {
		defer to.Close()
		_, _ = io.Copy(path{to, a, since}, from)
	}()
	_, _ = io.Copy(path{from, a, since}, to)
}

// namesake makes a database on the server of there by the name of another server's.
func namesake(t *testing.T, there, other dbtest.Database) dbtest.Database {
	t.Helper()
	db, _ := connect(t, there)
	mustExec(t, db, "CREATE DATABASE "+configOf(t, other).DBName)
	return reached(t, other, configOf(t, there).Addr)
}

func reached(t *testing.T, d dbtest.Database, addr string) dbtest.Database {
	t.Helper()
	cfg := configOf(t, d)
	cfg.Addr = addr
	d.DSN = cfg.FormatDSN()
	return d
}
