package service

import (
	"strings"

	"github.com/delaytask/delaytask/internal/config"
	"github.com/delaytask/delaytask/internal/httpapi"
)

// names are what the service may be called by: whatever the Host of a request is not among is refused.
type names struct {
	any   bool     // no name is refused
	hosts []string // besides those of loopback
}

// names returns what is answered. Where a token is asked for, a web page has none, under whatever name it reaches this server.
func (p *parts) names() names {
	loopback, _ := isLoopback(p.cfg.Server.Listen) // admit has read the address
	open := p.cfg.Server.Insecure && !loopback && len(p.cfg.Server.Hosts) == 0
	n := names{any: p.asked || open}
	for _, host := range p.cfg.Server.Hosts {
		if host = strings.ToLower(strings.Trim(host, "[]")); !httpapi.IsLoopbackName(host) {
			n.hosts = append(n.hosts, host)
		}
	}
	return n
}

// others reports whether names beyond those of loopback are answered.
func (n names) others() bool { return n.any || len(n.hosts) > 0 }

func (n names) String() string {
	if n.any {
		return "any"
	}
	return strings.Join(append([]string{"localhost", "loopback addresses"}, n.hosts...), ", ") + "; server.hosts adds names"
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
