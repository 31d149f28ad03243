package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// secretKey has no flag: lists of processes show flags.
const secretKey = "secret"

// settings is the only list of all keys.
var settings = []part[Config]{
	partOf("dsn", text(1), func(c *Config) *string { return &c.DSN }),
	partOf("migrate", boolean, func(c *Config) *bool { return &c.Migrate }),
	partOf("on_replica", boolean, func(c *Config) *bool { return &c.OnReplica }),
	partOf("start_paused", boolean, func(c *Config) *bool { return &c.StartPaused }),
	partOf(secretKey, text(0), func(c *Config) *string { return &c.Secret }),
	partOf("log.level", choice("debug", "info", "warn", "error"), func(c *Config) *string { return &c.Log.Level }),
	partOf("log.format", choice("text", "json"), func(c *Config) *string { return &c.Log.Format }),
	partOf("server.listen", hostPort, func(c *Config) *string { return &c.Server.Listen }),
	partOf("server.hosts", list, func(c *Config) *[]string { return &c.Server.Hosts }),
	partOf("server.auth", choice("auto", "token", "none"), func(c *Config) *string { return &c.Server.Auth }),
	partOf("server.insecure", boolean, func(c *Config) *bool { return &c.Server.Insecure }),
	partOf("server.get_topics", tagPatterns, func(c *Config) *[]string { return &c.Server.GetTopics }),
	partOf("server.metrics", choice("auto", "open"), func(c *Config) *string { return &c.Server.Metrics }),
	partOf("server.audit", choice("all", "operate", "off"), func(c *Config) *string { return &c.Server.Audit }),
	partOf("server.max_connections", integer(1, 1_000_000), func(c *Config) *int { return &c.Server.MaxConnections }),
	partOf("server.dashboard", choice("on", "read", "off"), func(c *Config) *string { return &c.Server.Dashboard }),
	partOf("server.public_url", publicURL, func(c *Config) *string { return &c.Server.PublicURL }),
	partOf("server.trusted_proxies", networks, func(c *Config) *[]string { return &c.Server.TrustedProxies }),
	partOf("server.redact", choice("on", "off"), func(c *Config) *string { return &c.Server.Redact }),
	partOf("server.redact_names", secretNames, func(c *Config) *[]string { return &c.Server.RedactNames }),
	partOf("server.tls.cert", text(0), func(c *Config) *string { return &c.Server.TLS.Cert }),
	partOf("server.tls.key", text(0), func(c *Config) *string { return &c.Server.TLS.Key }),
	partOf("server.tls.client_ca", text(0), func(c *Config) *string { return &c.Server.TLS.ClientCA }),
	partOf("push.allow", list, func(c *Config) *[]string { return &c.Push.Allow }),
	partOf("push.timeout", duration(time.Second, time.Hour), func(c *Config) *time.Duration { return &c.Push.Timeout }),
	partOf("push.host_concurrency", integer(1, 100_000), func(c *Config) *int { return &c.Push.HostConcurrency }),
	partOf("push.host_rate", number(0, 1_000_000), func(c *Config) *float64 { return &c.Push.HostRate }),
	partOf("concurrency", integer(1, 100_000), func(c *Config) *int { return &c.Concurrency }),
	partOf("ttr", duration(time.Second, day), func(c *Config) *time.Duration { return &c.TTR }),
	partOf("timeout", duration(0, year), func(c *Config) *time.Duration { return &c.Timeout }),
	partOf("max_attempts", integer(1, 1_000_000), func(c *Config) *int { return &c.MaxAttempts }),
	partOf("backoff.base", duration(time.Millisecond, year), func(c *Config) *time.Duration { return &c.Backoff.Base }),
	partOf("backoff.cap", duration(time.Millisecond, year), func(c *Config) *time.Duration { return &c.Backoff.Cap }),
	partOf("backoff.jitter", number(0, 1), func(c *Config) *float64 { return &c.Backoff.Jitter }),
	partOf("lookahead.every", duration(100*time.Millisecond, time.Minute),
		func(c *Config) *time.Duration { return &c.Lookahead.Every }),
	partOf("body_limit", integer(1, 1<<30), func(c *Config) *int { return &c.BodyLimit }),
	partOf("error_limit", integer(256, 16<<20), func(c *Config) *int { return &c.ErrorLimit }),
	partOf("stop_grace", duration(0, day), func(c *Config) *time.Duration { return &c.StopGrace }),
	partOf("node.name", text(0), func(c *Config) *string { return &c.Node.Name }),
	partOf("wake.listen", wakeAddress, func(c *Config) *string { return &c.Wake.Listen }),
	partOf("quarantine", integer(3, 1_000_000), func(c *Config) *int { return &c.Quarantine }),
	partOf("schedules_owner", owner, func(c *Config) *string { return &c.SchedulesOwner }),
	partOf("schedules_revision", moment, func(c *Config) *time.Time { return &c.SchedulesRevision }),
	partOf("retention.completed", duration(0, 100*year),
		func(c *Config) *time.Duration { return &c.Retention.Completed }),
	partOf("retention.cancelled", duration(0, 100*year),
		func(c *Config) *time.Duration { return &c.Retention.Cancelled }),
	partOf("retention.failed", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Failed }),
	partOf("retention.audit", duration(0, 100*year), func(c *Config) *time.Duration { return &c.Retention.Audit }),
}

// Keys returns every key but those below tags, receivers and schedules, in the order of config.yaml.
func Keys() []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.name
	}
	return keys
}

func unknownKey(path []string) error {
	key := strings.Join(path, ".")
	if _, known := find(settings, key); known {
		return errors.New("a key with dots has to be written nested, one part below the other")
	}
	if isSection(path) {
		return fmt.Errorf("want the keys below it: %s", strings.Join(keysBelow(key), ", "))
	}
	return unknown(Keys(), key)
}

func isSection(path []string) bool { return len(keysBelow(strings.Join(path, "."))) > 0 }

func keysBelow(section string) []string {
	return slices.DeleteFunc(Keys(), func(key string) bool { return !strings.HasPrefix(key, section+".") })
}
