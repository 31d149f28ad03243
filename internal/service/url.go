package service

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/delaytask/delaytask/internal/config"
)

// URL is where the service is reached. Where it listens on all addresses of its machine, that is the first of server.hosts, or
// loopback.
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
