package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// Config is what the API is made of.
type Config struct {
	Scheduler *scheduler.Scheduler // started; its owner stops it
	Log       *slog.Logger
	BodyLimit int             // bytes of a task's body, as the scheduler has it
	Stopping  context.Context // when it ends, waiting pops return at once

	Tokens    Authenticator // nil: no tokens are asked for
	CheckHost bool          // refuse requests whose Host is neither a loopback name nor one of Hosts
	Addresses bool          // do not refuse an address, be it one of loopback or not
	Hosts     []string      // in lower case

	Rooms     *reqbody.Rooms // for what requests hold; nil: as large as in a service
	Audit     *audit.Log     // records changes by callers; nil: nothing is recorded
	Requests  Requests       // remembers idempotency keys
	Receivers Receivers      // addresses that are called back
	// Check returns why a task of the tag cannot have the body. Nil: there are no rules besides the rules of a save.
	Check func(tag string, body []byte) error
	// Redactor masks the secrets of tasks and schedules in the answers to reads; nil: secrets are shown. Pops and the
	// answers to saves show a caller its own.
	Redactor *redact.Redactor
	// Observe is called for every request that was answered, with the request's context. May be nil.
	Observe func(context.Context, Request)

	Compat      LegacyProtocols // nil: their routes are not served
	Dashboard   Dashboard       // serves /ui/, where / leads; nil: neither is served
	Metrics     http.Handler    // serves /metrics; nil: it is not served
	OpenMetrics bool            // served without a token
}

// Authenticator identifies callers.
type Authenticator interface {
	// Asked reports whether callers need a token now. It returns access.ErrUnavailable when the tokens cannot be read.
	Asked(ctx context.Context) (bool, error)
	// Missing reports whether callers need a token before one was made. It returns access.ErrUnavailable when the
	// tokens cannot be read.
	Missing(ctx context.Context) (bool, error)
	// Check returns access.ErrUnauthorized for an unknown or expired token, and access.ErrUnavailable when the tokens
	// cannot be read.
	Check(ctx context.Context, bearer string) (access.Caller, error)
}

// Requests stores which request was served under which idempotency key.
type Requests interface {
	// ReserveRequest stores the request, or returns the one that is stored under its hash, and false.
	ReserveRequest(ctx context.Context, r row.Request) (row.Request, bool, error)
	// SaveRequest notes that the task of a request is stored.
	SaveRequest(ctx context.Context, r row.Request) error
}

// Receivers are the addresses that are called back with tasks. Its errors are *wire.Problem where the request is wrong.
type Receivers interface {
	Register(ctx context.Context, r *wire.Register) (wire.Receiver, error)
	List(ctx context.Context) ([]wire.Receiver, error)
	Known(ctx context.Context, app, address string) (wire.Receiver, bool, error) // expired or not
	Get(ctx context.Context, id int64) (wire.Receiver, error)
	Heartbeat(ctx context.Context, id int64) (wire.Receiver, error)
	Remove(ctx context.Context, id int64) error
	// Explain reports that no receiver serves the application of a task. Otherwise the Reason is "".
	Explain(ctx context.Context, task *delaytask.TaskRow) (report.Explanation, error)
}

// LegacyProtocols serves the routes of the legacy protocols, whose clients read one shape of answer alone.
type LegacyProtocols interface {
	http.Handler
	// Refuse answers in that shape to a request that was not let through.
	Refuse(w http.ResponseWriter, status int, detail string)
}

// Dashboard serves pages for people.
type Dashboard interface {
	http.Handler
	// Refuse answers with a page to a request that was not let through.
	Refuse(w http.ResponseWriter, r *http.Request, p *wire.Problem)
}
