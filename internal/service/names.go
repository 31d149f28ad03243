package service

import (
	"strings"

	"github.com/delaytask/delaytask/internal/config"
	"github.com/delaytask/delaytask/internal/httpapi"
)

// names are what the service may be called by: whatever the Host of a request is not among is refused.
type names struct {
	any       bool     // no name is refused
	addresses bool     // every address is answered, not those of loopback alone
	hosts     []string // besides those of loopback
}

// names returns what is answered. Where a token is asked for, a web page has none, under whatever name it reaches this server. Elsewhere a
// page could have its own name lead here. It cannot do that with an address, so a server that others reach answers addresses while
// it knows no name.
func (p *parts) names() names {
	loopback, _ := isLoopback(p.cfg.Server.Listen) // admit has read the address
	n := names{any: p.asked, addresses: !loopback && len(p.cfg.Server.Hosts) == 0}
	for _, host := range p.cfg.Server.Hosts {
		if host = strings.ToLower(strings.Trim(host, "[]")); !httpapi.IsLoopbackName(host) {
			n.hosts = append(n.hosts, host)
		}
	}
	return n
}

// others reports whether names beyond those of loopback are answered.
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
