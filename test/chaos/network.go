package main

import (
	"context"
	"errors"
	"net"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/netns"
	"github.com/delaytask/delaytask/test/chaos/proxy"
	"github.com/delaytask/delaytask/test/chaos/role"
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

// rejoin ends such a cut.
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
	o.Ahead = s.opts.ahead
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
