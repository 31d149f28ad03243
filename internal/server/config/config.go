// Package config reads the settings of the delaytask command: from a YAML file, from the environment, and from flags,
// each overriding the one before. Unknown keys and invalid values are refused, never ignored.
package config

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// Config is every setting. config.yaml explains each one.
type Config struct {
	DSN         string
	DSNFrom     string   // its source: --dsn, DELAYTASK_DSN or "config.yaml: dsn"; "": the default
	Exposed     []string // secrets in a settings file that others can read, as "config.yaml: secret"
	Overridden  []string // settings of the file that the environment overrides, as "log.level by DELAYTASK_LOG_LEVEL"
	Migrate     bool
	OnReplica   bool
	StartPaused bool
	Secret      string // seals the secrets of registered receivers; "": none can be kept
	Log         Log
	Server      Server
	Push        Push
	Concurrency int // tasks at once in this process
	TTR         time.Duration
	Timeout     time.Duration // 0: none
	MaxAttempts int
	Backoff     Backoff
	Lookahead   Lookahead
	BodyLimit   int // bytes
	ErrorLimit  int // bytes
	StopGrace   time.Duration
	Node        Node
	Wake        Wake
	Quarantine  int
	Retention   Retention
	Tags        map[string]Tag      // nil when no tag has settings of its own
	Receivers   map[string]Receiver // nil when no tag is served by calls to an address

	Schedules         map[string]Schedule // nil when none are declared
	SchedulesOwner    string              // "": the path of the program
	SchedulesRevision time.Time           // by default when the file was last modified; zero: there is no file

	inFile map[string]any // the values of the file by path, while settings are read
}

// Server says where the service listens and which callers it accepts.
type Server struct {
	Listen   string
	Hosts    []string // names that it is called by, besides loopback's
	Auth     string   // auto, token, none
	Insecure bool     // listen beyond loopback without tokens
	// GetTopics are patterns of topics that GET /o/get and /o/complete serve where other names than loopback are
	// answered.
	GetTopics []string
	Metrics   string // auto: with a token where tokens are asked for; open: without
	// Audit says which changes have an entry in the audit log: all, operate (no changes of single tasks), off.
	Audit          string
	MaxConnections int
	Dashboard      string // on, read: nothing can be changed there; off
	PublicURL      string // where browsers reach the dashboard by https; "": where it listens
	// TrustedProxies are networks whose X-Forwarded-For is believed, as netip.Prefix writes them.
	TrustedProxies []string
	Redact         string   // on, off: mask secrets in what callers are shown
	RedactNames    []string // of further members, headers and parameters that are secrets
	TLS            TLS
}

// TLS names the files of the server's certificate.
type TLS struct {
	Cert     string // "": no TLS
	Key      string
	ClientCA string // "": clients need no certificate
}

// Push says which addresses are called, and how.
type Push struct {
	Allow           []string // hosts and networks beyond public addresses
	Timeout         time.Duration
	HostConcurrency int
	HostRate        float64 // calls a second to one host; 0: no limit
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // text, json
}

// Backoff is the wait between attempts.
type Backoff struct {
	Base   time.Duration
	Cap    time.Duration
	Jitter float64 // share, 0 to 1
}

// Lookahead says how often the near future is read.
type Lookahead struct {
	Every time.Duration
}

// Node is this process among the others.
type Node struct {
	Name string // "": the host's name
}

// Wake says where this process is told of tasks that others save.
type Wake struct {
	Listen string // UDP address; "off": nowhere
}

// Retention is how long finished tasks, and entries of the audit log, are kept; 0 keeps them for ever.
type Retention struct {
	Completed time.Duration
	Cancelled time.Duration
	Failed    time.Duration
	Audit     time.Duration
}

// Tag holds the settings of one tag. Zero fields take the process's.
type Tag struct {
	Concurrency int
	Timeout     time.Duration
	NoTimeout   bool // the timeout 0 was asked for
	TTR         time.Duration
	MaxAttempts int
}

// Receiver is an address that is called with the tasks of a tag.
type Receiver struct {
	URL         string
	Method      string
	Secrets     []string
	PassRule    string // JSON
	Concurrency int
}

// Schedule is a schedule that this process declares. Zero fields have the defaults of the library.
type Schedule struct {
	delaytask.Schedule // but for its lines, its body and its headers
	Cron               []string
	Every              string
	At                 []string
	Except             []string
	Body               string
	App                string
	Headers            []string // name=value
}

// Default returns the default settings.
func Default() Config {
	return Config{
		DSN: sqlstore.DefaultDSN,
		Log: Log{Level: "info", Format: "text"},
		Server: Server{
			Listen: "127.0.0.1:8080", Auth: "auto", Metrics: "auto", Audit: "all", MaxConnections: 10_000,
			Dashboard: "on", Redact: "on",
		},
		Push:        Push{Timeout: 30 * time.Second, HostConcurrency: 16},
		Concurrency: 64,
		TTR:         15 * time.Second,
		Timeout:     5 * time.Minute,
		MaxAttempts: 20,
		Backoff:     Backoff{Base: time.Second, Cap: time.Hour, Jitter: 0.2},
		Lookahead:   Lookahead{Every: time.Second},
		BodyLimit:   1 << 20,
		ErrorLimit:  8 << 10,
		StopGrace:   30 * time.Second,
		Wake:        Wake{Listen: ":7342"},
		Quarantine:  5,
		Retention:   Retention{Completed: 7 * day, Cancelled: 7 * day, Failed: 30 * day, Audit: 365 * day},
	}
}
