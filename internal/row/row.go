// Package row holds what is stored: the row of delay_task_message, the commands that change it, and the classes of
// errors a store can answer with. It knows no database and no engine; both sides of the store's contract speak in its
// types.
package row

import (
	"strings"
	"time"
)

// Status is where a task stands. The numbers are stored.
type Status uint8

const (
	Pending   Status = 0
	Completed Status = 1
	Failed    Status = 2
	Executing Status = 3
	Cancelled Status = 4
)

// Final reports whether no transition but an operator's retry leaves the status.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

func (s Status) String() string {
	switch s {
	case Pending:
		return "pending"
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Executing:
		return "executing"
	case Cancelled:
		return "cancelled"
	default:
		return "unknown"
	}
}

// LatePolicy says what happens to a task whose claim comes later than its max lateness.
type LatePolicy uint8

const (
	LateRun  LatePolicy = 0 // run anyway
	LateSkip LatePolicy = 1 // cancel it, with the reason
	LateFail LatePolicy = 2 // fail it, with the reason
)

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
	LatePolicy  LatePolicy
	IPAddress   uint32
	Executor    string // "host:pid:process token:claim number" of the last claim
	Delay       time.Duration
	Expected    Time // the promise to the user
	Execution   Time // when the first attempt was handed to somebody who could run it; see [Row.FirstStart]
	Finish      Time // when a final status was reached
	Due         Time // when this row next needs attention
	ErrorStack  string
	Errors      []byte // JSON array of the last attempts' errors, or nil (NULL)
	Created     Time
	Updated     Time
}

// FirstStart reports whether Execution is what the claim that holds the row has written, because there was no start
// before: the begin of its lease. When the attempt was really handed over, its executor knows. A renewal of the lease
// hides it.
func (r *Row) FirstStart() bool {
	return !r.Execution.IsZero() && r.Execution == r.Due.Add(-max(r.TTR, MinTTR))
}

// Attempt is one entry of the errors column.
type Attempt struct {
	N        int       `json:"n"`
	Due      time.Time `json:"due,omitzero"`     // zero when not known: the executor is gone
	Started  time.Time `json:"started,omitzero"` // zero when not known, or when the processor never started
	Finished time.Time `json:"finished"`
	Executor string    `json:"executor"`
	Error    string    `json:"error"`
}

// Due is what the look-ahead, the peek and the scan read of a pending row: enough to arm or claim it, never its body.
type Due struct {
	ID         int64
	Version    int64
	Tag        string
	Due        Time // zero for a row that a plain INSERT left without one: it has to be adopted
	Priority   int
	CrashCount int
}

// State is the part of a row that tells who holds it.
type State struct {
	ID       int64
	Tag      string
	Version  int64
	Status   Status
	Due      Time // the lease's end while executing
	Executor string
}

// Ref names a row and the version it was seen at.
type Ref struct {
	ID      int64
	Version int64
}

// Reading is one look at the database's clock.
type Reading struct {
	Time   Time
	Server string // which server answered; a cluster behind one address has several
}

// Sighting is the row as a look at the table would find it.
func (r *Row) Sighting() Due {
	return Due{ID: r.ID, Version: r.Version, Tag: r.Tag, Due: r.Due, Priority: r.Priority, CrashCount: r.CrashCount}
}

// TagKey names the unfinished task that carries a key, as the key is stored.
type TagKey struct{ Tag, Key string }

const (
	// GlobalKey begins the keys that share one namespace over all tags.
	GlobalKey = "s3:"
	// AppKey begins the keys that belong to an application, see [ScopedKey]. Callers can use neither beginning.
	AppKey = "delaytask-app:"
)

// Scope is what the key must be unique in, and so what rows are compared by: the tag is left out of a [GlobalKey].
func (k TagKey) Scope() TagKey {
	if strings.HasPrefix(k.Key, GlobalKey) {
		k.Tag = ""
	}
	return k
}

// ScopedKey is how a caller's key is stored: with the application that it belongs to, or as it is where that is "". No
// name of an application holds the character between the two, so no two pairs are stored alike.
func ScopedKey(app, key string) string {
	if app == "" || key == "" {
		return key
	}
	return AppKey + app + "|" + key
}

// OwnKey is the caller's key of a stored one. A key that was stored without the application of its task is shown as it
// is.
func OwnKey(app, stored string) string {
	if app == "" {
		return stored
	}
	return strings.TrimPrefix(stored, AppKey+app+"|")
}

// Request is one row of delay_task_request: a request that came with an Idempotency-Key, and what became of it. It is
// forgotten 24 hours after it came.
type Request struct {
	Hash      [32]byte // of the caller and the key
	Content   [32]byte // of the request: another one under the same key is refused
	TaskID    int64    // the task that it saves; the one that it met when Duplicate
	Saved     bool     // the task is stored
	Duplicate bool     // the key of the task was taken
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

// Receiver is one row of delay_task_worker: an address that is called back with tasks. There is one for each pair of
// application and address.
type Receiver struct {
	ID      int64 // written by the store
	App     string
	Address string
	Tags    []string
	Secret  []byte // sealed; nil: calls are not signed
	TTL     time.Duration
	Created Time // written by the store
	Expires Time // written by the store: TTL after it was saved, or after its last heartbeat
}
