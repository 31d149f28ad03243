package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// GuardConfig says what may be called beside public addresses by https on ports 80, 443 and 8443.
type GuardConfig struct {
	// Allow lists host names ("hooks.example.internal"), addresses ("10.1.2.3") and ranges ("10.1.0.0/16"). What is on it
	// may be called by http too, and on any port; a name on it may lead to any address. Default: nothing.
	Allow []string
	// AllowLoopback puts 127.0.0.0/8 and ::1 on the list. It is meant for a server that itself listens on loopback alone.
	AllowLoopback bool
	// AllowHTTP allows http to public addresses: what is sent can be read and changed on the way. Default: https alone.
	AllowHTTP bool
	// Ports of public addresses. Default: 80, 443 and 8443.
	Ports []uint16
	// DialTimeout bounds a look-up and connect. Default 5 s.
	DialTimeout time.Duration
	// Resolver looks names up. Default: net.DefaultResolver.
	Resolver *net.Resolver
}

// Guard decides what may be called. It is safe for concurrent use.
type Guard struct {
	hosts     map[string]bool
	nets      []netip.Prefix
	ports     []uint16
	allowHTTP bool
	dialer    net.Dialer
}

const blockedReason = "its address, scheme or port is not allowed; an operator can put the host on the allow list"

// NewGuard makes a guard. It returns [ErrInvalidConfig] when an entry of the list is no host name, address or range.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	g := &Guard{
		hosts:     map[string]bool{},
		ports:     cfg.Ports,
		allowHTTP: cfg.AllowHTTP,
		dialer:    net.Dialer{Timeout: cfg.DialTimeout, Resolver: cfg.Resolver},
	}
	if len(g.ports) == 0 {
		g.ports = []uint16{80, 443, 8443}
	}
	if g.dialer.Timeout <= 0 {
		g.dialer.Timeout = 5 * time.Second
	}
	if cfg.AllowLoopback {
		g.nets = append(g.nets, loopback...)
	}
	for _, entry := range cfg.Allow {
		if err := g.allow(entry); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Guard) allow(entry string) error {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		if prefix.Addr().Is4In6() {
			return fmt.Errorf("%w: allow %q: write the range as IPv4", ErrInvalidConfig, entry)
		}
		g.nets = append(g.nets, prefix.Masked())
		return nil
	}
	if addr, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		addr = canonical(addr)
		g.nets = append(g.nets, netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	name := canonicalName(entry)
	if !validName(name) {
		return fmt.Errorf("%w: allow %q: want a host name, an address or a range such as 10.1.0.0/16", ErrInvalidConfig, entry)
	}
	g.hosts[name] = true
	return nil
}

// permit judges one address that a host has led to.
func (g *Guard) permit(scheme, host string, addr netip.Addr, port uint16) error {
	addr = canonical(addr)
	switch {
	case g.hosts[host], within(g.nets, addr):
		return nil
	case !addr.IsValid(), within(notPublic, addr):
		return fmt.Errorf("%w: %s has no public address; an operator can put it on the allow list", ErrBlockedURL, host)
	}
	return g.permitOpen(scheme, host, port)
}

// permitOpen judges what is asked of a host in public.
func (g *Guard) permitOpen(scheme, host string, port uint16) error {
	if scheme != "https" && !g.allowHTTP {
		return fmt.Errorf("%w: %s would be called by http; use https", ErrBlockedURL, host)
	}
	if !slices.Contains(g.ports, port) {
		return fmt.Errorf("%w: port %d of %s; allowed are %v", ErrBlockedURL, port, host, g.ports)
	}
	return nil
}

// dial returns the only way in which a transport for the scheme gets connections. The check stands between the look-up
// and the connect, on the very address that is connected to: a name that leads elsewhere a moment later changes
// nothing, nor does any spelling of an address.
func (g *Guard) dial(scheme string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		host = canonicalName(host)
		dialer := g.dialer
		dialer.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
			resolved, err := netip.ParseAddrPort(address)
			if err != nil || !strings.HasPrefix(network, "tcp") {
				return fmt.Errorf("%w: %s leads to no TCP address", ErrBlockedURL, host)
			}
			return g.permit(scheme, host, resolved.Addr(), resolved.Port())
		}
		return dialer.DialContext(ctx, network, address)
	}
}
