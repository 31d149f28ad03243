// Package row holds what is stored: the row of delay_task_message, the commands that change it, and the classes of a
// store's errors. It knows no database and no engine. Both sides of the store's contract use its types.
package row

import (
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
)

// Status is the state of a task. The numbers are stored.
type Status uint8

const (
	Pending   Status = 0
	Completed Status = 1
	Failed    Status = 2
	Executing Status = 3
	Cancelled Status = 4
)

// Final reports whether only an operator's retry leaves the status.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// MinTTR is the shortest lease. A plain INSERT may store any TTR; one below it counts as this.
const MinTTR = time.Second

// Row is one task as it is stored.
type Row struct {
	ID          int64
	Tag         string
	Key         string // as it is stored: see [ScopedKey]; "" means none (NULL)
	Body        []byte
	Status      Status
	Version     int64 // +1 at every transition: the lease token
	Attempt     int   // number of this attempt: +1 at claim
	MaxAttempts int   // 0 means no limit (NULL)
	CrashCount  int   // leases that a rescue had to end
	TTR         time.Duration
	Priority    int
	Headers     []byte // a JSON object, or nil (NULL)
	MaxLate     time.Duration
	LatePolicy  delaytask.LatePolicy
	IPAddress   uint32
	Executor    Executor // of the last claim
	Process     string   // "host:pid" of the executor, which no read returns: see store.NameProcesses
	Delay       time.Duration
	Expected    Time                 // when the task is to start, as promised to the user
	Execution   Time                 // when the first attempt was handed to who runs it; see [Row.FirstStart]
	Late        delaytask.LateReason // "" also for one of a later version
	Due         Time                 // next attempt, end of the lease, or [Row.Finish]
	ErrorStack  string
	Errors      []byte // JSON array of the last attempts' errors, or nil (NULL)
	Created     Time
	Updated     Time
	TickOf      *TickOf // of the run of a schedule, else nil; only Insert writes it, and nothing changes it after that
}

// FirstStart reports whether Execution is the start of the present lease, written by its claim because there was no
// start before. The executor knows when it has really handed the attempt over. After a renewal of the lease FirstStart
// returns false.
func (r *Row) FirstStart() bool {
	return !r.Execution.IsZero() && r.Execution == r.Due.Add(-max(r.TTR, MinTTR))
}

// Finish returns when the row reached its final status, and zero before.
func (r *Row) Finish() Time {
	if r.Status.Final() {
		return r.Due
	}
	return 0
}

// Attempt is one entry of the errors column.
type Attempt struct {
	N        int       `json:"n"`
	Due      time.Time `json:"due,omitzero"`     // zero when unknown: the executor is gone
	Started  time.Time `json:"started,omitzero"` // zero when unknown, or when the processor never started
	Finished time.Time `json:"finished"`
	Executor string    `json:"executor"`
	Error    string    `json:"error"`
}

// Due is what the engine reads of a pending row to arm or claim it. It has no body.
type Due struct {
	ID         int64
	Version    int64
	Tag        string
	Due        Time // zero for a row that a plain INSERT left without one, which has to be adopted
	Priority   int
	CrashCount int
}

// State is the part of a row that tells which executor owns it.
type State struct {
	ID       int64
	Tag      string
	Version  int64
	Status   Status
	Due      Time // the lease's end while executing
	Executor Executor
}

// Ref names a row and the version it was seen at.
type Ref struct {
	ID      int64
	Version int64
}

// Reading is one look at the database's clock.
type Reading struct {
	Time   Time
	Server string // the server that answered; a cluster behind one address has several
	Other  string // a server of another database that answers at the same address; "" for none

	// Asked is when the statement that read it was sent, by time.Now; zero: when the call of the store began.
	Asked time.Time
}

// Sighting returns what [Due] holds of the row.
func (r *Row) Sighting() Due {
	return Due{ID: r.ID, Version: r.Version, Tag: r.Tag, Due: r.Due, Priority: r.Priority, CrashCount: r.CrashCount}
}

// State returns what [State] holds of the row.
func (r *Row) State() State {
	return State{ID: r.ID, Tag: r.Tag, Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}
}

// TagKey names the unfinished task that carries a key, as the key is stored.
type TagKey struct{ Tag, Key string }

const (
	// GlobalKey begins the keys that share one namespace over all tags.
	GlobalKey = "s3:"
	// AppKey begins the keys that belong to an application, see [ScopedKey]. Callers can use neither beginning.
	AppKey = "delaytask-app:"
)

// Scope returns what must be unique, which leaves out the tag of a [GlobalKey].
func (k TagKey) Scope() TagKey {
	if strings.HasPrefix(k.Key, GlobalKey) {
		k.Tag = ""
	}
	return k
}

// ScopedKey returns a caller's key as it is stored: with the application that it belongs to, or as it is where app is
// "". No name of an application holds the separator, so different pairs give different keys.
func ScopedKey(app, key string) string {
	if app == "" || key == "" {
		return key
	}
	return AppKey + app + "|" + key
}

// OwnKey returns the caller's key of a stored one. It returns a key that was stored without the application as it is.
func OwnKey(app, stored string) string {
	if app == "" {
		return stored
	}
	return strings.TrimPrefix(stored, AppKey+app+"|")
}

// Request is one row of delay_task_request: a request with an Idempotency-Key, and its outcome. It is kept for 24
// hours.
type Request struct {
	Hash      [32]byte // of the caller and the key
	Content   [32]byte // of the request: another one under the same key is refused
	TaskID    int64    // the task that it saves; when Duplicate, the one that has the key
	Saved     bool     // the task is stored
	Duplicate bool     // the key of the task was taken

	Rescheduled bool // that task got the time of the request; Duplicate is set, too
}

// AccessToken is one row of delay_task_token. The token itself is stored nowhere.
type AccessToken struct {
	Name    string
	Hash    [32]byte // SHA-256 of the token
	Tags    []string // each exact, or a prefix that ends in "*"
	Verbs   []string
	Created Time // written by the store
	Expires Time // zero: never
}

// BootstrapVerb is the one verb of a bootstrap token. It allows everything. Expires is zero until the token is revoked
// or a whole token is made. Its row stays then, so that the same secret is never good again.
const BootstrapVerb = "bootstrap"

// BootstrapPrefix begins the name of each bootstrap token. "." is the byte after its last one.
const BootstrapPrefix = "bootstrap-"

// Bootstrap reports whether the token is a bootstrap token, and ended whether it is one that is refused for ever.
func (t *AccessToken) Bootstrap() (is, ended bool) {
	is = slices.Contains(t.Verbs, BootstrapVerb)
	return is, is && !t.Expires.IsZero()
}

// Whole reports whether the token has all verbs for all tags.
func (t *AccessToken) Whole() bool {
	return slices.Contains(t.Verbs, "all") && slices.Contains(t.Tags, "*")
}

// Session is one row of delay_task_session: a login to the dashboard. The cookie is stored nowhere.
type Session struct {
	Hash      [32]byte // SHA-256 of the cookie
	Token     string   // name of the access token
	TokenHash [32]byte // of that token
	Expires   Time     // written by the store
}

// Receiver is one row of delay_task_worker: an address that is called back with tasks. There is one for each pair of
// application and address.
type Receiver struct {
	ID      int64 // written by the store
	App     string
	Address string
	Tags    []string
	Secret  []byte // encrypted; nil: calls are not signed
	TTL     time.Duration
	Created Time // written by the store
	Expires Time // written by the store: TTL after it was saved, or after its last heartbeat
}
