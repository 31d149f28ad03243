package config

import "time"

// setting ties a key to its field. The table below is the only list of all keys.
type setting struct {
	key    string
	noFlag bool // lists of processes show flags
	set    func(c *Config, value any) error
	get    func(c *Config) any
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

var settings = []setting{
	of("dsn", text(1), func(c *Config) *string { return &c.DSN }),
	of("migrate", boolean, func(c *Config) *bool { return &c.Migrate }),
	withoutFlag(of("secret", text(0), func(c *Config) *string { return &c.Secret })),
	of("log.level", choice("debug", "info", "warn", "error"), func(c *Config) *string { return &c.Log.Level }),
	of("log.format", choice("text", "json"), func(c *Config) *string { return &c.Log.Format }),
	of("server.listen", hostPort, func(c *Config) *string { return &c.Server.Listen }),
	of("server.hosts", list, func(c *Config) *[]string { return &c.Server.Hosts }),
	of("server.auth", choice("auto", "token", "none"), func(c *Config) *string { return &c.Server.Auth }),
	of("server.insecure", boolean, func(c *Config) *bool { return &c.Server.Insecure }),
	of("server.get_topics", tagPatterns, func(c *Config) *[]string { return &c.Server.GetTopics }),
	of("server.metrics", choice("auto", "open"), func(c *Config) *string { return &c.Server.Metrics }),
	of("server.audit", choice("all", "operate", "off"), func(c *Config) *string { return &c.Server.Audit }),
	of("server.max_connections", integer(1, 1_000_000), func(c *Config) *int { return &c.Server.MaxConnections }),
	of("server.dashboard", choice("on", "read", "off"), func(c *Config) *string { return &c.Server.Dashboard }),
	of("server.public_url", publicURL, func(c *Config) *string { return &c.Server.PublicURL }),
	of("server.trusted_proxies", networks, func(c *Config) *[]string { return &c.Server.TrustedProxies }),
	of("server.redact", choice("on", "off"), func(c *Config) *string { return &c.Server.Redact }),
	of("server.redact_names", secretNames, func(c *Config) *[]string { return &c.Server.RedactNames }),
	of("server.tls.cert", text(0), func(c *Config) *string { return &c.Server.TLS.Cert }),
	of("server.tls.key", text(0), func(c *Config) *string { return &c.Server.TLS.Key }),
	of("server.tls.client_ca", text(0), func(c *Config) *string { return &c.Server.TLS.ClientCA }),
	of("push.allow", list, func(c *Config) *[]string { return &c.Push.Allow }),
	of("push.timeout", duration(time.Second, time.Hour), func(c *Config) *time.Duration { return &c.Push.Timeout }),
	of("push.host_concurrency", integer(1, 100_000), func(c *Config) *int { return &c.Push.HostConcurrency }),
	of("push.host_rate", number(0, 1_000_000), func(c *Config) *float64 { return &c.Push.HostRate }),
	of("concurrency", integer(1, 100_000), func(c *Config) *int { return &c.Concurrency }),
	of("ttr", duration(time.Second, day), func(c *Config) *time.Duration { return &c.TTR }),
	of("timeout", duration(0, year), func(c *Config) *time.Duration { return &c.Timeout }),
	of("max_attempts", integer(1, 1_000_000), func(c *Config) *int { return &c.MaxAttempts }),
	of("backoff.base", duration(time.Millisecond, year), func(c *Config) *time.Duration { return &c.Backoff.Base }),
	of("backoff.cap", duration(time.Millisecond, year), func(c *Config) *time.Duration { return &c.Backoff.Cap }),
	of("backoff.jitter", number(0, 1), func(c *Config) *float64 { return &c.Backoff.Jitter }),
	of("lookahead.every", duration(100*time.Millisecond, time.Minute),
		func(c *Config) *time.Duration { return &c.Lookahead.Every }),
	of("body_limit", integer(1, 1<<30), func(c *Config) *int { return &c.BodyLimit }),
	of("error_limit", integer(256, 16<<20), func(c *Config) *int { return &c.ErrorLimit }),
	of("stop_grace", duration(0, day), func(c *Config) *time.Duration { return &c.StopGrace }),
	of("node.name", text(0), func(c *Config) *string { return &c.Node.Name }),
	of("wake.listen", wakeAddress, func(c *Config) *string { return &c.Wake.Listen }),
	of("quarantine", integer(3, 1_000_000), func(c *Config) *int { return &c.Quarantine }),
	of("schedules_owner", owner, func(c *Config) *string { return &c.SchedulesOwner }),
	of("schedules_revision", moment, func(c *Config) *time.Time { return &c.SchedulesRevision }),
	of("retention.completed", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Completed }),
	of("retention.cancelled", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Cancelled }),
	of("retention.failed", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Failed }),
	of("retention.audit", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Audit }),
}

// of makes a setting of a parser and the field that the parsed value goes to.
func of[T any](key string, parse func(any) (T, error), field func(*Config) *T) setting {
	return setting{
		key: key,
		set: func(c *Config, value any) error {
			parsed, err := parse(value)
			if err == nil {
				*field(c) = parsed
			}
			return err
		},
		get: func(c *Config) any { return *field(c) },
	}
}

func withoutFlag(s setting) setting {
	s.noFlag = true
	return s
}

func find(key string) (setting, bool) {
	for _, s := range settings {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// Keys returns every key but those below tags, receivers and schedules, in the order of config.yaml.
func Keys() []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return keys
}
