package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/netns"
	"github.com/delaytask/delaytask/test/system/chaos/proxy"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// setNetwork gives the workers networks of their own where that is possible. Elsewhere their proxies make the
// partitions.
func (s *stage) setNetwork(ctx context.Context) (err error) {
	s.world.Invite = func(ctx context.Context, name string) (*fleet.Slot, error) {
		return s.add(ctx, name, role.Order{Role: role.Worker, Tags: role.Harmless})
	}
	s.world.Part, s.world.Join = s.part, s.rejoin
	s.net, err = netns.New(ctx)
	if errors.Is(err, netns.ErrNone) {
		s.say("partitions are made by proxies: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	s.later(func() error { return s.net.Close(context.WithoutCancel(ctx)) })
	return nil
}

// part cuts a process off from the database, in silence.
func (s *stage) part(ctx context.Context, slot *fleet.Slot) error {
	if slot.Namespace == "" {
		slot.Proxy.Cut()
		return nil
	}
	return s.net.Pull(ctx, slot.Namespace)
}

func (s *stage) rejoin(ctx context.Context, slot *fleet.Slot) error {
	if slot.Namespace == "" {
		slot.Proxy.Heal()
		return nil
	}
	return s.net.Plug(ctx, slot.Namespace)
}

// add fills a place with a process that has a proxy to the database of its own. On a cluster the processes of a role
// take turns among the members; with one primary all go to that. Guests share the machine's network.
func (s *stage) add(ctx context.Context, name string, o role.Order) (slot *fleet.Slot, err error) {
	o.Clock = s.clock
	o.Share = s.opts.share // of all processes the same: a history is of what each of them did
	slot = &fleet.Slot{Name: name}
	host, peers := "127.0.0.1", len(s.world.Fleet.Of(o.Role))
	if s.net != nil && o.Role == role.Worker && peers < s.opts.workers {
		host = s.net.Addr()
		if slot.Namespace, err = s.net.Add(ctx); err != nil {
			return slot, err
		}
	}
	leads := func() string { return s.addrs[peers%len(s.addrs)] }
	if s.opts.single {
		leads = s.primaryAddr
	}
	if slot.Proxy, err = proxy.New(context.WithoutCancel(ctx), net.JoinHostPort(host, "0"), leads); err != nil {
		return slot, err
	}
	s.later(slot.Proxy.Close)
	cfg := s.cfg.Clone()
	cfg.Addr = slot.Proxy.Addr()
	o.DSN, o.Seed = cfg.FormatDSN(), s.opts.seed
	s.world.Fleet.Add(context.WithoutCancel(ctx), slot, o)
	return slot, nil
}

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
