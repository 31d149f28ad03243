package signin

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/delaytask/delaytask/internal/server/api"
)

// keepsCookies reports whether the browser keeps a Secure cookie, and others cannot read a token on its way. That is so
// over TLS, on this machine, and over a proxy with TLS. A request that came to the proxy over plain HTTP does not
// count. Browsers send Sec-Fetch-Site over TLS and to this machine alone.
func (h *Handler) keepsCookies(r *http.Request) bool {
	if r.TLS != nil || api.IsLoopbackName(api.HostName(r.Host)) {
		return true
	}
	public, err := url.Parse(h.cfg.PublicURL)
	if err != nil || h.cfg.PublicURL == "" {
		return false
	}
	return strings.EqualFold(r.Host, public.Host) || r.Header.Get("Sec-Fetch-Site") != ""
}
