package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/delaytask/delaytask/internal/server/access"
)

// admit decides who may call.
func (p *parts) admit(ctx context.Context) error {
	tokens, _, err := p.store.AccessTokens(ctx)
	if err != nil {
		return fmt.Errorf("read the tokens: %w", err)
	}
	loopback, err := isLoopback(p.cfg.Server.Listen)
	if err != nil {
		return err
	}
	c := p.cfg.Server
	asked := c.Auth == "token" || c.Auth == "auto" && (!loopback && !c.Insecure || len(tokens) > 0)
	switch {
	case !asked && !loopback && !c.Insecure:
		return fmt.Errorf("server.listen is %s, where others can reach it, and server.auth is none: everybody could do everything; "+
			"ask for tokens, listen on 127.0.0.1, or insist with --insecure", c.Listen)
	case asked && len(tokens) == 0 && !loopback:
		create := "delaytask token create NAME --tags '*' --verbs all"
		if p.cfg.DSNFrom == "" { // commands that write want it named
			create += " --dsn " + p.cfg.DSN
		}
		return fmt.Errorf("server.listen is %s, where others can reach it, and there is no token yet: make one with: %s; "+
			"or listen on 127.0.0.1, or insist with --insecure", c.Listen, create)
	case asked:
		p.tokens, p.asked = access.NewTokens(p.store), true
	case c.Auth == "auto":
		p.tokens = access.NewTokensOnceThereAreAny(p.store)
		_, err = p.tokens.Asked(ctx) // so that there is a reading, should the database go away
	}
	return err
}

// isLoopback reports whether only this machine reaches the address.
func isLoopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("server.listen: %w", err)
	}
	if host == "localhost" {
		return true, nil
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback(), nil
}
