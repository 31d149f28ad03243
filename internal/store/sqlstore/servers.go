package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// identityLife is for how long a server counts as what it has said it is. It may be demoted meanwhile.
	identityLife = time.Minute
	// followEvery is the least time between two looks at where new connections lead.
	followEvery = 10 * time.Second
	// apartFor is for how long a database that does not answer any more still counts. Connections of a pool lead to it
	// for up to maxLifetime after the address has moved.
	apartFor = 2 * maxLifetime
)

// servers knows which servers have answered behind the address of a database. When the address moves to another server
// while the old one stays up, connections go on to lead to the old one. Then writes and reads would not meet. So the
// connection that was made last counts: the others are given up.
//
// Methods may be called by several goroutines.
type servers struct {
	db *pool

	mu        sync.Mutex // no other lock is taken while it is held
	asked     map[string]answer
	databases map[string]*sight // that were met lately and can be written
	current   string            // the database that new connections lead to
	most      int               // connections of the server that has answered last; 0: not known
	live      int               // the most nodes lately
	counted   time.Time         // when live was
	epoch     int               // grows with each move
	followed  time.Time
	silence   time.Time // connections from before have no answers any more; zero: none is known
	strange   time.Time // since when live nodes name another server at each look; zero: none did at the last
}

type answer struct {
	identity
	at time.Time
}

// sight is when answers of a database have come.
type sight struct {
	server      string
	name        string
	first, last time.Time
}

func newServers(db *pool) *servers {
	return &servers{db: db, asked: map[string]answer{}, databases: map[string]*sight{}}
}

// moves returns a number that grows when the address has moved.
func (s *servers) moves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// silent notes that connections from before that time have no answers any more.
func (s *servers) silent(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence = before
}

// takeIdle takes the connections that are idle in the pool. Each is discarded or given back.
func (s *servers) takeIdle() (idle []*sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	for range s.db.Stats().Idle {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			break
		}
		idle = append(idle, conn)
	}
	return idle
}

// leadsNowhere reports whether a connection was opened before a silence.
func (s *servers) leadsNowhere(opened time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return opened.Before(s.silence)
}

// other returns another database's server that has answered since the current one has, "" for none.
func (s *servers) other() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	here := s.databases[s.current]
	if here == nil {
		return ""
	}
	for database, there := range s.databases {
		overlap := there.last.After(here.first) && here.last.After(there.first)
		if database != s.current && overlap {
			return there.server
		}
	}
	return ""
}

const (
	// sharedPart is the part of a server's connections that all nodes together take.
	sharedPart = 0.8
	// sharedFor is for how long a node counts that lives no more: on an overloaded server heartbeats are late.
	sharedFor = time.Minute
)

// ConnectionsFor returns with how many connections of a server so many nodes keep to sharedPart.
func ConnectionsFor(nodes int) int { return int(math.Ceil(float64(nodes*(crowded+1)) / sharedPart)) }

// share returns how many connections each of so many live nodes may have; 0: not known.
func (s *servers) share(live int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); live >= s.live || now.Sub(s.counted) >= sharedFor {
		s.live, s.counted = live, now
	}
	if s.live == 0 {
		return 0
	}
	return int(sharedPart*float64(s.most)) / s.live
}

// name is what heartbeats call the current database, "" where that is not known, or where the address leads to two.
func (s *servers) name() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if here := s.databases[s.current]; here != nil && len(s.databases) == 1 {
		return here.name
	}
	return ""
}

// strangeFor notes whether live nodes name another server, and returns for how long they have without a break.
func (s *servers) strangeFor(strange bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strange {
		s.strange = time.Time{}
		return 0
	}
	if s.strange.IsZero() {
		s.strange = time.Now()
	}
	return time.Since(s.strange)
}

// meet notes who answers on a connection, and reports whether it is the current database. A reading on it has named the
// server, "" for none. While two databases are known every server is asked anew: one may just have been demoted.
func (s *servers) meet(ctx context.Context, conn *sql.Conn, server string) (current bool, err error) {
	s.mu.Lock()
	s.forget()
	a, known := s.asked[server]
	known = known && time.Since(a.at) < identityLife && len(s.databases) < 2
	s.mu.Unlock()
	if !known {
		if a.identity, err = identify(ctx, conn); err != nil {
			return false, err
		}
		a.at = time.Now()
	}
	return s.note(a), nil
}

// forget forgets what has not answered for long.
func (s *servers) forget() {
	now := time.Now()
	maps.DeleteFunc(s.asked, func(_ string, a answer) bool { return now.Sub(a.at) > apartFor })
	maps.DeleteFunc(s.databases, func(_ string, met *sight) bool { return now.Sub(met.last) > apartFor })
}

// note takes what a server has said, and reports whether it is the current database. A server that cannot be written
// is a replica, and no database of its own.
func (s *servers) note(a answer) (current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[a.server], s.most = a, a.most
	if !a.writable {
		delete(s.databases, a.database)
		return true
	}
	s.current = cmp.Or(s.current, a.database)
	now := time.Now()
	if s.databases[a.database] == nil {
		s.databases[a.database] = &sight{server: a.server, name: a.name, first: now}
	}
	s.databases[a.database].last = now
	return a.database == s.current
}

// connect returns a connection of the pool that leads to the current database. Where the address leads to two, it may
// lead to the other.
func (s *servers) connect(ctx context.Context) (*sql.Conn, error) {
	for {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		current, err := s.meet(ctx, conn, "")
		if err != nil {
			discard(conn)
			return nil, fmt.Errorf("%w: %w", errSetUp, err)
		}
		if current {
			return conn, nil
		}
		if !s.mayFollow() {
			return conn, nil
		}
		discard(conn)
		if err := s.follow(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *servers) mayFollow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.followed.IsZero() && time.Since(s.followed) < followEvery {
		return false
	}
	s.followed = time.Now()
	return true
}

// follow finds where new connections lead. Idle ones may be older than the move, so it gives them up. It notes which
// servers of theirs still answer.
func (s *servers) follow(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	for range s.db.Stats().Idle {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		s.part(ctx, conn)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	id, err := identify(ctx, conn)
	if err != nil {
		discard(conn)
		return err
	}
	if !s.note(answer{id, time.Now()}) {
		s.mu.Lock()
		s.current = id.database
		s.epoch++
		s.mu.Unlock()
	}
	return conn.Close() // only gives it back
}

// part gives up a connection that may lead elsewhere, and notes whether its server still answers.
func (s *servers) part(ctx context.Context, conn *sql.Conn) {
	if id, err := identify(ctx, conn); err == nil {
		s.note(answer{id, time.Now()})
	}
	discard(conn)
}

// now takes a reading of the current database. A connection that leads elsewhere is given up.
func (s *servers) now(ctx context.Context, read func(*sql.Conn) (row.Reading, error)) (reading row.Reading, err error) {
	reading, current, err := s.look(ctx, read)
	if err == nil && !current && s.mayFollow() {
		if err = s.follow(ctx); err == nil {
			reading, _, err = s.look(ctx, read)
		}
	}
	reading.Other = s.other()
	return reading, err
}

// look takes a reading on a connection of the pool, and reports whether that leads to the current database.
func (s *servers) look(ctx context.Context, read func(*sql.Conn) (row.Reading, error)) (
	reading row.Reading, current bool, err error) {
	err = s.db.borrow(ctx, func(conn *sql.Conn) (bool, error) {
		if reading, err = read(conn); err == nil {
			current, err = s.meet(ctx, conn, reading.Server)
		}
		return !sessionKeeps(err) && (err != nil || current), err
	})
	return reading, current, err
}
