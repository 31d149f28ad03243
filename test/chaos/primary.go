package main

import (
	"context"
	"database/sql"
	"net"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/test/chaos/role"
)

const (
	lookForPrimary = 100 * time.Millisecond
	voteIn         = 500 * time.Millisecond
)

func (s *stage) primaryAddr() string { return s.addrs[s.primary.Load()] }

// primaryPool connects to the member that is the primary when a connection is made, as a router does. It keeps no
// connection: an old primary that was frozen would answer on it.
func (s *stage) primaryPool(dsn string) (*sql.DB, error) {
	const network = "primary"
	mysql.RegisterDialContext(network, func(ctx context.Context, first string) (net.Conn, error) {
		if len(s.addrs) > 0 {
			first = s.primaryAddr()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", first)
	})
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.Net = network
	db, err := s.pool(cfg.FormatDSN())
	if err == nil {
		db.SetMaxIdleConns(-1)
	}
	return db, err
}

// follow points the processes' proxies to the next primary when a group has chosen one, and resets their connections to
// the last one.
func (s *stage) follow(ctx context.Context) {
	if !s.opts.single {
		return
	}
	s.world.Primary = func() int { return int(s.primary.Load()) }
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var following sync.WaitGroup
	following.Go(func() {
		for lateness.Pass(ctx, lookForPrimary) == nil {
			next, chosen := s.chosen(ctx)
			if !chosen || s.primary.Swap(next) == next {
				continue
			}
			s.say("member %d is the primary", next)
			for _, name := range []string{role.Worker, role.Saver} {
				for _, slot := range s.world.Fleet.Of(name) {
					slot.Proxy.Reset()
				}
			}
		}
	})
	s.later(func() error {
		stop()
		following.Wait()
		return nil
	})
}

// chosen is the primary that two members agree on: one that was away may still name itself.
func (s *stage) chosen(ctx context.Context) (primary int64, agreed bool) {
	const ask = "SELECT member_port FROM performance_schema.replication_group_members" +
		" WHERE member_role = 'PRIMARY' AND member_state = 'ONLINE'"
	said := make([]string, len(s.members))
	var asking sync.WaitGroup
	for i, m := range s.members {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, voteIn)
			defer cancel()
			_ = m.QueryRowContext(ctx, ask).Scan(&said[i]) // a member without an answer has no vote
		})
	}
	asking.Wait()
	for i, addr := range s.addrs {
		_, port, _ := net.SplitHostPort(addr) // it is of a DSN that was parsed
		votes := 0
		for _, vote := range said {
			if vote == port {
				votes++
			}
		}
		if votes > 1 {
			return int64(i), true
		}
	}
	return 0, false
}
