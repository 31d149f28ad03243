package row

import "time"

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
