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

	"github.com/delaytask/delaytask/internal/hostname"
)

// GuardConfig says what may be called beside public addresses by https on ports 80, 443 and 8443.
type GuardConfig struct {
	// Allow lists host names ("hooks.example.internal"), addresses ("10.1.2.3") and ranges ("10.1.0.0/16"). Its hosts
	// may be called by http too, and on any port; a name on it may lead to any address. Default: nothing.
	Allow []string
	// AllowLoopback puts 127.0.0.0/8 and ::1 on the list. It is meant for a server that itself listens on loopback
	// alone.
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
	if !hostname.Valid(name) {
		return fmt.Errorf("%w: allow %q: want a host name, an address or a range such as 10.1.0.0/16", ErrInvalidConfig,
			entry)
	}
	g.hosts[name] = true
	return nil
}

// permit checks one address that a host resolved to.
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

// permitOpen checks scheme and port of a public host.
func (g *Guard) permitOpen(scheme, host string, port uint16) error {
	if scheme != "https" && !g.allowHTTP {
		return fmt.Errorf("%w: %s would be called by http; use https", ErrBlockedURL, host)
	}
	if !slices.Contains(g.ports, port) {
		return fmt.Errorf("%w: port %d of %s; allowed are %v", ErrBlockedURL, port, host, g.ports)
	}
	return nil
}

// dial returns the dialler of a transport for the scheme. It checks the address between look-up and connect, so a name
// that resolves elsewhere a moment later changes nothing, nor does any spelling of an address.
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

// notPublic lists the ranges that are not on the public internet, after the special-purpose registries of IANA. Of IPv6
// only 2000::/3 is in public use; the rest (loopback, mapped and NAT64 forms of IPv4, unique local, link-local,
// site-local, multicast) is denied as a whole. So no range that is put into use later is forgotten.
var notPublic = prefixes(
	"0.0.0.0/8",       // this network; many systems connect to themselves
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT; metadata services of some clouds
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local; metadata services of most clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments; metadata services of some clouds
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast

	"::/3",          // unspecified, loopback, IPv4-mapped, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard
	"2001::/23",     // protocol assignments: Teredo, benchmarking, ORCHID
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4
	"3fff::/20",     // documentation
	"4000::/2",
	"8000::/1", // with fc00::/7 (unique local), fe80::/10 (link-local), fec0::/10 (site-local), ff00::/8 (multicast)
)

// loopback is what a server on a loopback address may call beside the public addresses.
var loopback = prefixes("127.0.0.0/8", "::1/128")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range list {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// canonical returns one spelling of an address. A v4-mapped one becomes the IPv4 address that would be dialled. A zone
// is dropped, because no prefix contains an address with one.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
