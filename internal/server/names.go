package server

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/config"
)

// names are the hosts that the service answers to: a request with another Host is refused.
type names struct {
	any       bool     // no name is refused
	addresses bool     // every address is answered, not loopback's alone
	hosts     []string // besides loopback's
}

// names returns the hosts that are answered. Where tokens are required a web page has none, so every name is answered.
// Elsewhere a page could have its own name lead here. It cannot do that with an address, so a server that others reach
// answers addresses while no name is set.
func (p *parts) names() names {
	loopback, _ := isLoopback(p.cfg.Server.Listen) // admit has read the address
	n := names{any: p.asked, addresses: !loopback && len(p.cfg.Server.Hosts) == 0}
	hosts := p.cfg.Server.Hosts
	if public, err := url.Parse(p.cfg.Server.PublicURL); err == nil && public.Host != "" {
		hosts = append(slices.Clone(hosts), public.Hostname())
	}
	for _, host := range hosts {
		if host = strings.ToLower(strings.Trim(host, "[]")); !api.IsLoopbackName(host) {
			n.hosts = append(n.hosts, host)
		}
	}
	return n
}

// others reports whether other names than loopback's are answered.
func (n names) others() bool { return n.any || n.addresses || len(n.hosts) > 0 }

func (n names) String() string {
	if n.any {
		return "any"
	}
	addresses := "loopback addresses"
	if n.addresses {
		addresses = "every address"
	}
	return strings.Join(append([]string{"localhost", addresses}, n.hosts...), ", ") + "; server.hosts adds names"
}

// Names says which names are answered.
func (s *Service) Names() string { return s.parts.names().String() }

// Gets says which topics are served by the protocol that takes jobs by GET.
func (s *Service) Gets() string { return gets(s.parts.names(), s.cfg.Server) }

func gets(n names, c config.Server) string {
	switch {
	case !n.others():
		return "on: loopback names alone are answered"
	case len(c.GetTopics) == 0:
		return "off: any web page can send a GET to this server; server.get_topics names topics that need them"
	default:
		return "on for " + strings.Join(c.GetTopics, ", ") + ", with a token or the header Delaytask-Client"
	}
}

// URL is where the service is reached. Where it listens on all addresses of its machine, that is the first of
// server.hosts, or loopback.
func (s *Service) URL() string {
	address := s.listener.Addr().String()
	if host, port, err := net.SplitHostPort(address); err == nil && isWildcard(host) {
		address = net.JoinHostPort(s.name(), port)
	}
	return scheme(s.cfg.Server.TLS) + "://" + address
}

// LocalURL is where a service with these settings is reached from its own machine. It returns an error where the port
// is 0, and so another one after every start.
func LocalURL(c config.Server) (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", fmt.Errorf("server.listen: %w", err)
	}
	if port == "0" {
		return "", fmt.Errorf("server.listen %s: want a port that is not 0, to find the service", c.Listen)
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
		if address.Is6() {
			host = "::1"
		}
	}
	return scheme(c.TLS) + "://" + net.JoinHostPort(host, port), nil
}

func scheme(c config.TLS) string {
	if c.Cert != "" {
		return "https"
	}
	return "http"
}

// Everywhere reports whether the service is reached at every address of its machine.
func (s *Service) Everywhere() bool {
	host, _, err := net.SplitHostPort(s.listener.Addr().String())
	return err == nil && isWildcard(host)
}

func (s *Service) name() string {
	if hosts := s.cfg.Server.Hosts; len(hosts) > 0 {
		return strings.Trim(hosts[0], "[]")
	}
	return "127.0.0.1"
}

func isWildcard(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsUnspecified()
}
