package dashboard

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

const (
	keepServer  = time.Hour // a server may be upgraded
	serverTime  = 500 * time.Millisecond
	serverPause = time.Minute // after a read that failed
)

// server is what the footer says of the database.
type server struct {
	name atomic.Pointer[string] // kind and version, and never an address; nil while they are not known

	mu   sync.Mutex // held during a read
	next time.Time
}

// learn asks the server for its version now and then. A page does without it.
func (s *server) learn(ctx context.Context, from store.Store) {
	stored, ok := from.(*sqlstore.Store)
	if !ok || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if time.Now().Before(s.next) {
		return
	}
	inspect := sqlstore.Inspect(stored)
	if !inspect.HasRowLocks() {
		s.keep("SQLite")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	told, err := inspect.Show(ctx, sqlstore.SessionVariables, "version")
	if err != nil {
		s.next = time.Now().Add(serverPause)
		return
	}
	kind, version := "MySQL", told["version"] // as in 9.7.4-2 or 10.11.19-MariaDB-0+deb12u1
	if strings.Contains(version, "MariaDB") {
		kind = "MariaDB"
	}
	number, _, _ := strings.Cut(version, "-")
	s.keep(kind + " " + number)
}

func (s *server) keep(name string) {
	s.name.Store(&name)
	s.next = time.Now().Add(keepServer)
}
