package webhook

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
)

func TestAddressesThatAreNotPublicAreDenied(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, GuardConfig{})
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1",
		"255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:db8::1",
		"2002:7f00:1::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
		"fec0::1", "ff02::1",
	} {
		if err := guard.permit("https", "h", netip.MustParseAddr(text), 443); !errors.Is(err, ErrBlockedURL) {
			t.Errorf("%s: got %v, want ErrBlockedURL", text, err)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
		"223.255.255.1", "::ffff:8.8.8.8", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1",
	} {
		if err := guard.permit("https", "h", netip.MustParseAddr(text), 443); err != nil {
			t.Errorf("%s: %v, want it permitted", text, err)
		}
	}
	if err := guard.permit("https", "h", netip.Addr{}, 443); !errors.Is(err, ErrBlockedURL) {
		t.Errorf("no address: got %v, want ErrBlockedURL", err)
	}
}

func TestAllowListOpensSchemesPortsAndAddresses(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, GuardConfig{Allow: []string{"Hooks.Internal.", "10.1.0.0/16", "[fd00::5]", "192.168.7.7"}})
	f := func(scheme, host, addr string, port uint16, want bool) {
		t.Helper()
		if err := guard.permit(scheme, host, netip.MustParseAddr(addr), port); (err == nil) != want {
			t.Errorf("%s %s (%s) port %d: got %v", scheme, host, addr, port, err)
		}
	}
	f("http", "hooks.internal", "10.9.9.9", 22, true)
	f("http", "other", "10.1.2.3", 8080, true)
	f("http", "other", "::ffff:10.1.2.3", 8080, true)
	f("https", "other", "fd00::5", 1, true)
	f("https", "other", "192.168.7.7", 1, true)
	f("https", "other", "192.168.7.8", 443, false)
	f("https", "x.hooks.internal", "10.9.9.9", 443, false)
	f("https", "other", "127.0.0.1", 443, false)
	f("http", "other", "8.8.8.8", 80, false)
	f("https", "other", "8.8.8.8", 8443, true)
	f("https", "other", "8.8.8.8", 22, false)
}

func TestGuardRefusesAListThatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "http://h", "10.0.0.0/33", "h:80", "*.internal", "b\u00fccher.de",
		"::ffff:10.0.0.0/104"} {
		if _, err := NewGuard(GuardConfig{Allow: []string{entry}}); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%q: got %v, want ErrInvalidConfig", entry, err)
		}
	}
}

// The resolver answers numeric spellings as operating systems do. Scheme and port are open, so that only the check of
// the address stands before the server.
func TestEverySpellingOfALocalAddressIsBlockedAtDial(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	server := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	port := portNumber(t, server.Listener.Addr())
	guard := newGuard(t, GuardConfig{AllowHTTP: true, Ports: []uint16{port},
		Resolver: fakeDNS(func(string) []string { return []string{"127.0.0.1"} })})
	for _, host := range []string{
		"127.0.0.1", "0", "0x7f.1", "0x7f000001", "0177.0.0.1", "2130706433", "127.1", "::1", "::ffff:127.0.0.1",
		"64:ff9b::7f00:1", "localhost", "localhost.", "LocalHost", "127.0.0.1.", "169.254.169.254", "fd00:ec2::254",
		"100.64.0.1", "0.0.0.0", "::",
		freshName(),
	} {
		conn, err := guard.dial("http")(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s was dialled", host)
			continue
		}
		// Go's own resolver does not know the numeric spellings that C libraries know.
		var dns *net.DNSError
		unknown := errors.As(err, &dns) && dns.IsNotFound
		if !errors.Is(err, ErrBlockedURL) && !unknown {
			t.Errorf("%s: got %v, want ErrBlockedURL", host, err)
		}
	}
	if reached.Load() != 0 {
		t.Error("the server was reached")
	}
}

// The first look-up leads to an allowed address and the second to a local one, which only a check at the dial can see.
func TestNameThatFlipsToALocalAddressIsBlocked(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	var flipped atomic.Bool
	client := newClient(t, func(cfg *Config) {
		cfg.Guard = newGuard(t, GuardConfig{Allow: []string{"127.0.0.1"}, Resolver: fakeDNS(func(string) []string {
			if flipped.Load() {
				return []string{"127.0.0.2"}
			}
			return []string{"127.0.0.1"}
		})})
	})
	port := strconv.Itoa(int(portNumber(t, server.Listener.Addr())))
	call := Call{URL: "http://" + freshName() + ":" + port + "/"}
	if _, err := client.Deliver(t.Context(), someTask(), call); err != nil {
		t.Fatalf("before the flip: %v", err)
	}
	flipped.Store(true)
	if _, err := client.Deliver(t.Context(), someTask(), call); !errors.Is(err, ErrBlockedURL) {
		t.Fatalf("after the flip: got %v, want ErrBlockedURL", err)
	}
}

func TestLocalAddressOfAMixedNameIsNeverDialled(t *testing.T) {
	t.Parallel()
	allowed := serve(t, func(http.ResponseWriter, *http.Request) {})
	port := portNumber(t, allowed.Listener.Addr())
	denied, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(int(port))))
	if err != nil {
		t.Skip("only Linux has 127.0.0.2 by default:", err)
	}
	t.Cleanup(func() { _ = denied.Close() })
	for _, order := range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}} {
		guard := newGuard(t, GuardConfig{Allow: []string{"127.0.0.1"},
			Resolver: fakeDNS(func(string) []string { return order })})
		conn, err := guard.dial("http")(t.Context(), "tcp", freshName()+":"+strconv.Itoa(int(port)))
		if err != nil {
			t.Errorf("%v: %v", order, err)
			continue
		}
		if got := conn.RemoteAddr().(*net.TCPAddr).IP.String(); got != "127.0.0.1" {
			t.Errorf("%v: connected to %s", order, got)
		}
		_ = conn.Close()
	}
	// Whatever was dialled is in the backlog: a connection of ours comes behind it.
	ours, err := net.Dial("tcp", denied.Addr().String())
	mustOK(t, err)
	defer ours.Close()
	first, err := denied.Accept()
	mustOK(t, err)
	defer first.Close()
	if first.RemoteAddr().String() != ours.LocalAddr().String() {
		t.Error("the denied address was dialled")
	}
}

// Where an allowed range makes CheckURL leave a name to the dial, scheme and port are judged there.
func TestPublicAddressIsJudgedBySchemeAndPortAtDial(t *testing.T) {
	t.Parallel()
	client := newClient(t, func(cfg *Config) {
		cfg.Guard = newGuard(t, GuardConfig{AllowLoopback: true,
			Resolver: fakeDNS(func(string) []string { return []string{"1.1.1.1"} })})
	})
	for _, raw := range []string{"http://" + freshName() + "/", "https://" + freshName() + ":22/"} {
		if err := client.CheckURL(raw); err != nil {
			t.Errorf("%s: %v, want it left to the dial", raw, err)
		}
		if _, err := client.Deliver(t.Context(), someTask(), Call{URL: raw}); !errors.Is(err, ErrBlockedURL) {
			t.Errorf("%s: got %v, want ErrBlockedURL", raw, err)
		}
	}
}

func newGuard(t *testing.T, cfg GuardConfig) *Guard {
	t.Helper()
	guard, err := NewGuard(cfg)
	mustOK(t, err)
	return guard
}

func portNumber(t *testing.T, addr net.Addr) uint16 {
	t.Helper()
	parsed, err := netip.ParseAddrPort(addr.String())
	mustOK(t, err)
	return parsed.Port()
}
