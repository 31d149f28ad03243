package service

import (
	"net"
	"net/netip"
	"strings"
)

// URL is where the service is reached. Where it listens on all addresses of its machine, that is the first of server.hosts, or
// loopback.
func (s *Service) URL() string {
	scheme := "http"
	if s.cfg.Server.TLS.Cert != "" {
		scheme = "https"
	}
	address := s.listener.Addr().String()
	if host, port, err := net.SplitHostPort(address); err == nil && isWildcard(host) {
		address = net.JoinHostPort(s.name(), port)
	}
	return scheme + "://" + address
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
