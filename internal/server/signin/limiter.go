package signin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	span       = time.Minute
	mostOfOne  = 10  // wrong tokens of one address within the span
	mostOfAll  = 100 // of all addresses together
	ipv6Subnet = 64  // bits: one customer has that many addresses behind them
)

// limiter counts the logins with wrong tokens of the last minute. The bound of all bounds its memory, too.
type limiter struct {
	mu     sync.Mutex
	logins []login // the oldest first
}

type login struct {
	at   time.Time
	from netip.Addr
}

// admit counts a wrong token. It returns how long to wait where there were too many, and counts none then.
func (l *limiter) admit(from netip.Addr) (wait time.Duration) {
	if from.Is6() {
		subnet, _ := from.WithZone("").Prefix(ipv6Subnet) // it has as many bits
		from = subnet.Addr()
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logins = slices.DeleteFunc(l.logins, func(other login) bool { return now.Sub(other.at) >= span })
	var own []login
	for _, other := range l.logins {
		if other.from == from {
			own = append(own, other)
		}
	}
	switch {
	case len(own) >= mostOfOne:
		return span - now.Sub(own[0].at)
	case len(l.logins) >= mostOfAll:
		return span - now.Sub(l.logins[0].at)
	}
	l.logins = append(l.logins, login{now, from})
	return 0
}

// sender is the address that a request comes from. Of those in X-Forwarded-For it is the rightmost one that is not a
// trusted proxy itself. What stands left of it anyone can have written.
func sender(r *http.Request, trusted []netip.Prefix) netip.Addr {
	from, _ := addressOf(r.RemoteAddr) // the zero address for a connection that has none
	noted := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(noted) {
		if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(from) }) {
			break
		}
		address, ok := addressOf(strings.TrimSpace(text))
		if !ok {
			break
		}
		from = address
	}
	return from
}

// addressOf reads an address with or without a port.
func addressOf(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), true
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap(), err == nil
}
