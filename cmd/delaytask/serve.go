package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/otlp"
	"github.com/delaytask/delaytask/internal/server/signin"
)

func (a *app) serveCommand() *cobra.Command {
	var insecure bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve tasks over HTTP: save, pull, and call back",
		Long: `Serve tasks over HTTP to any language: programs save tasks, take due ones by long poll, or are called.

Without settings it uses the embedded database, which it creates, and listens on loopback. It ends
in order on SIGTERM and Ctrl-C: waiting calls return, running tasks get their grace; a second signal
kills it. See config.yaml for every setting.

Beyond loopback callers need an access token. DELAYTASK_BOOTSTRAP_TOKEN, or the file that
DELAYTASK_BOOTSTRAP_TOKEN_FILE names, holds the first one, of openssl rand -base64 32. Without any
token the service is alive and not ready.

Traces are sent where OTEL_EXPORTER_OTLP_ENDPOINT says, and nowhere without it.`,
		Example: `  delaytask serve
  DELAYTASK_DSN='user:password@tcp(127.0.0.1:3306)/shop' delaytask serve --migrate
  delaytask serve --server-listen :8443 --server-tls-cert cert.pem --server-tls-key key.pem`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, insecure) },
	}
	addSettings(cmd, config.Keys()[1:]...) // the first is dsn, which every command has
	cmd.Flags().BoolVar(&insecure, "insecure", false,
		"the same as --server-insecure: listen beyond loopback without tokens")
	return cmd
}

func (a *app) serve(cmd *cobra.Command, insecure bool) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	c.Server.Insecure = c.Server.Insecure || insecure
	traces, err := otlp.FromEnv(a.getenv)
	if err != nil {
		return misused(err)
	}
	first, err := access.BootstrapFromEnv(a.getenv)
	if err != nil {
		return misused(err)
	}
	log := a.logger(c.Log)
	if len(c.Exposed) > 0 {
		log.Warn("others can read secrets in the settings file; take that right away (chmod o-r), or set them by "+
			"environment variables", "secrets", c.Exposed)
	}
	if len(c.Overridden) > 0 {
		log.Info("the environment overrides settings of the file", "settings", c.Overridden)
	}
	s, err := server.Open(cmd.Context(), c, log, server.Traced(traces), server.Bootstrap(by(), first))
	if err != nil {
		return err
	}
	a.announce(c, s, traces.Host())
	go keepMemory(cmd.Context(), a.getenv)
	return s.Run(cmd.Context())
}

// announce prints the addresses. It ignores write errors: the server works without a reader.
func (a *app) announce(c config.Config, s *server.Service, collector string) {
	url, everywhere := s.URL(), ""
	if s.Everywhere() {
		everywhere = ", and at every other address of this machine"
	}
	tokens := "not asked for: whoever reaches this address may do everything"
	if s.Tokens() {
		tokens = "asked for; make one with: " + access.Create + c.Reach()
	}
	named := ""
	if c.DSNFrom == "" {
		named = ", because none is named; commands that write want --dsn " + c.DSN
	}
	traces := ""
	if collector != "" {
		traces = "\n  traces     sent to " + collector
	}
	wakes := ""
	if listen := c.Wake.Listen; !strings.HasPrefix(c.DSN, "sqlite:") && listen != wake.Off {
		wakes = fmt.Sprintf("\n  wake-ups   on UDP %s: others tell of tasks that are due (wake.listen)", listen)
	}
	pages := url + signin.Root
	if c.Server.Dashboard == "off" {
		pages = "off: server.dashboard"
	}
	_ = a.printf(`delaytask serves at %[1]s%[2]s
  database   %[3]s%[4]s
  API        %[1]s/v1/tasks, described at %[1]s/docs and %[1]s/openapi.json
  dashboard  %[10]s
  health     %[1]s/healthz, %[1]s/readyz, %[1]s/metrics
  names      %[5]s
  tokens     %[6]s
  GET /o/…   %[7]s%[8]s%[9]s
Ctrl-C ends it in order.
`, url, everywhere, config.MaskDSN(c.DSN), named, s.Names(), tokens, s.Gets(), wakes, traces, pages)
}
