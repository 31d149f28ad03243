package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/signin"
	"github.com/delaytask/delaytask/scheduler"
)

// dashboard makes the pages, behind a login where tokens are asked for.
func (p *parts) dashboard(pages Pages) (*signin.Handler, error) {
	c := signin.Config{
		Store: p.store, Log: p.log, ReadOnly: p.cfg.Server.Dashboard == "read", PublicURL: p.cfg.Server.PublicURL,
		Note: api.NoteToken, Rooms: p.rooms,
	}
	if p.tokens != nil {
		c.Tokens = p.tokens
	}
	for _, text := range p.cfg.Server.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("server.trusted_proxies: %w", err)
		}
		c.Trusted = append(c.Trusted, network)
	}
	var err error
	if c.Pages, err = pages(p.scheduler, c.ReadOnly); err != nil {
		return nil, err
	}
	return signin.New(c)
}

// pages makes the pages of package dashboard, for callers whom the login has found.
func (p *parts) pages() Pages {
	return func(s *scheduler.Scheduler, readOnly bool) (http.Handler, error) {
		o := dashboard.Options{
			Who: userOf, ReadOnly: readOnly, Redact: p.redactor.Text, RedactBeginning: p.redactor.Beginning,
			Down: p.client.Down, Log: p.log, NoAudit: p.cfg.Server.Audit == string(audit.Off),
			Check: p.check,
		}
		if p.tokens != nil {
			o.SignOut = "logout"
		}
		return dashboard.New(s, o)
	}
}

// userOf returns the caller that package signin has found. What this release does not know allows nothing. Scripts and
// styles are served without a login, and an unknown path among them has no caller.
func userOf(r *http.Request) (dashboard.User, error) {
	caller := access.From(r.Context())
	if caller.Name() == "" && len(caller.Verbs()) == 0 {
		return dashboard.User{}, dashboard.ErrSignIn
	}
	u := dashboard.User{Name: caller.Name(), Open: caller.Name() == ""}
	for _, v := range caller.Verbs() {
		if v == access.All || slices.Contains(access.Verbs, v) {
			u.Verbs = append(u.Verbs, string(v))
		}
	}
	for _, tag := range caller.Tags() {
		if _, err := access.ParseTags([]string{tag}); err == nil {
			u.Tags = append(u.Tags, tag)
		}
	}
	return u, nil
}
