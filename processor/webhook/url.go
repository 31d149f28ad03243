package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/hostname"
)

const maxURL = 8 << 10 // bytes; receivers commonly refuse longer ones

// target is a URL that has passed the checks which need no look-up.
type target struct {
	url  *url.URL
	host string // lower case, without the dot at the end
	port uint16
}

// key names the receiver for limits.
func (t target) key() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// CheckURL refuses what can be refused without a look-up: [ErrInvalidURL] or [ErrBlockedURL]. A URL that passes may
// still be blocked when it is dialled. No error holds more of the URL than its host.
func (g *Guard) CheckURL(raw string) error {
	_, err := g.check(raw)
	return err
}

func (g *Guard) check(raw string) (target, error) {
	t, err := parseURL(raw)
	if err != nil || g.hosts[t.host] {
		return t, err
	}
	if addr, err := netip.ParseAddr(t.host); err == nil {
		return t, g.permit(t.url.Scheme, t.host, addr, t.port)
	}
	if isLocalhost(t.host) {
		err := g.permit(t.url.Scheme, t.host, netip.AddrFrom4([4]byte{127, 0, 0, 1}), t.port)
		if err != nil && g.permit(t.url.Scheme, t.host, netip.IPv6Loopback(), t.port) == nil {
			err = nil
		}
		return t, err
	}
	if len(g.nets) > 0 {
		return t, nil // the name may lead into an allowed range, where any scheme and port will do: the dial decides
	}
	return t, g.permitOpen(t.url.Scheme, t.host, t.port)
}

func parseURL(raw string) (target, error) {
	fail := func(why string) (target, error) { return target{}, fmt.Errorf("%w: %s", ErrInvalidURL, why) }
	if len(raw) > maxURL {
		return fail("it is longer than " + strconv.Itoa(maxURL) + " bytes")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return fail("it holds a space, a control character or a backslash")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fail("it is malformed") // the parser's error quotes it, and paths of webhooks are often secret
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fail("it must begin with https://, or with http:// where an operator allows that for the host")
	case u.Hostname() == "":
		return fail("it has no host")
	case u.User != nil:
		return fail("it has a user name; send an Authorization header instead")
	case strings.Contains(raw, "#"):
		return fail("it has a fragment")
	}
	t := target{url: u, host: canonicalName(u.Hostname())}
	if !hostname.Valid(t.host) {
		return fail("its host is no ASCII name or address; write other letters in punycode (xn--…)")
	}
	if t.port = hostname.Port(u); t.port == 0 {
		return fail("its port is not 1-65535")
	}
	return t, nil
}

// isLocalhost reports whether the name leads to loopback by RFC 6761.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func canonicalName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
