package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/wire"
)

// healthFlags select the service and the check.
type healthFlags struct {
	url     string
	timeout time.Duration
	live    bool
}

func (a *app) healthCommand() *cobra.Command {
	f := healthFlags{timeout: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a service whether it is ready",
		Long: `Ask a running service whether it can save and run tasks (/readyz), or with --live whether
its process answers (/healthz). The exit code is 0 when it says yes and 1 otherwise: a container needs
no shell to ask. No token is sent.

--url names the service, or else DELAYTASK_URL. Without both it is the one on this machine that the settings describe
for serve: server.listen and server.tls, from flags, the environment and config.yaml. That one is known by its
certificate, whatever names it holds; where server.tls.client_ca is set, it must have signed this certificate too.`,
		Example: `  delaytask health
  delaytask health --url https://tasks.example.com --timeout 2s
  delaytask health --live --server-listen :9090 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.health(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "the service, such as https://tasks.example.com; also DELAYTASK_URL")
	durationVar(cmd, &f.timeout, "timeout", "how long it may take to answer")
	flags.BoolVar(&f.live, "live", false, "ask whether the process answers, not whether it is ready")
	addSettings(cmd, "server.listen", "server.tls.cert", "server.tls.key")
	return a.withJSON(cmd)
}

func (a *app) health(cmd *cobra.Command, f *healthFlags) error {
	s, err := a.serviceToAsk(cmd, f.url)
	if err != nil {
		return err
	}
	defer s.transport.CloseIdleConnections()
	path, want := "/readyz", "ready"
	if f.live {
		path, want = "/healthz", "ok"
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	defer a.working()()
	warning, err := s.ask(ctx, path, want)
	if err != nil {
		return fmt.Errorf("%s: %w", s.base, err)
	}
	if a.json {
		return a.printJSON(struct {
			URL     string `json:"url"`
			State   string `json:"state"`
			Warning string `json:"warning,omitempty"`
		}{s.base, want, warning})
	}
	if warning != "" {
		a.note("delaytask: warning: %s\n", warning)
	}
	return a.printf("%s: %s\n", s.base, want)
}

// askedService is the address of a service, and the transport to it.
type askedService struct {
	base, host string // host: the name that is asked for, "": the name in base
	transport  *http.Transport
}

// ask returns the warning of the answer, and an error when the answer is not the expected one.
func (s *askedService) ask(ctx context.Context, path, want string) (warning string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		return "", misused(err)
	}
	req.Host = s.host
	res, err := s.transport.RoundTrip(req) // which follows no redirect
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	defer res.Body.Close()
	const most = 64 << 10
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	if p := new(wire.Problem); json.Unmarshal(body, p) == nil && p.Code != "" {
		return "", p
	}
	state, warning, _ := strings.Cut(strings.TrimSpace(string(body)), "\nwarning: ")
	if res.StatusCode != http.StatusOK || state != want {
		return "", fmt.Errorf("%w: %s, and not %q", errUnhealthy, res.Status, want)
	}
	return warning, nil
}

// serviceToAsk returns the named service, or the one that the settings describe.
func (a *app) serviceToAsk(cmd *cobra.Command, named string) (*askedService, error) {
	s := &askedService{transport: http.DefaultTransport.(*http.Transport).Clone()}
	if named == "" {
		named = a.getenv("DELAYTASK_URL")
	}
	if named != "" {
		u, err := url.Parse(named)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			u.RawQuery != "" {
			return nil, misusedf("the service's URL must be http:// or https:// with a host, without user or query")
		}
		s.base = strings.TrimRight(named, "/")
		return s, nil
	}
	c, err := a.settings(cmd)
	if err != nil {
		return nil, err
	}
	if s.base, err = server.LocalURL(c.Server); err != nil {
		return nil, misused(err)
	}
	s.transport.Proxy = nil
	s.host = "localhost" // every service answers to this name
	if c.Server.TLS.Cert != "" {
		s.transport.TLSClientConfig, err = pinned(c.Server.TLS)
	}
	return s, err
}

// pinned trusts the certificate of the settings alone, which need not contain an address of this machine.
func pinned(c config.TLS) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("server.tls.cert and server.tls.key: %w", err)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		Certificates:       []tls.Certificate{own},
		InsecureSkipVerify: true, // VerifyConnection is stricter
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
				return errors.New("the certificate differs from server.tls.cert")
			}
			return nil
		},
	}, nil
}
