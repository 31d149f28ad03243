package wire

import "github.com/delaytask/delaytask"

// Popped is a task that was handed out: its caller ends it by its lease token before lease_until.
type Popped struct {
	ID       ID                `json:"id"`
	Token    string            `json:"token" doc:"The lease token, for finish, fail, release and touch"`
	Tag      string            `json:"tag"`
	Key      string            `json:"key,omitempty"`
	App      string            `json:"app,omitempty" doc:"The application that it belongs to"`
	Attempt  int               `json:"attempt" doc:"1 for the first"`
	Crashes  int               `json:"crash_count,omitempty" doc:"Executors that died while they had it"`
	Priority int               `json:"priority,omitempty"`
	Expected Time              `json:"expected,omitzero" doc:"When it was promised to start"`
	Due      Time              `json:"due,omitzero" doc:"When this attempt was due"`
	Headers  map[string]string `json:"headers,omitempty"`
	Schedule *ScheduledRun     `json:"schedule,omitempty" doc:"Of the run of a schedule"`
	Body
}

// PopReply is what a pop hands out.
type PopReply struct {
	Tasks []Popped `json:"tasks"`
}

// Finish completes a task that was handed out.
type Finish struct {
	Token string `json:"token" doc:"The lease token, from the pop"`
}

// FinishBatch completes many.
type FinishBatch struct {
	Tokens []string `json:"tokens" doc:"From pops, at most 10,000"`
}

// FinishBatchReply has one result for each token, in their order.
type FinishBatchReply struct {
	Results []FinishResult `json:"results"`
}

// FinishResult says whether a task was completed.
type FinishResult struct {
	Token  string `json:"token"`
	Code   string `json:"code,omitempty" doc:"Absent when it was completed; lease_lost when somebody else has the task"`
	Detail string `json:"detail,omitempty"`
}

// Touch makes a lease end later.
type Touch struct {
	Token string   `json:"token" doc:"The lease token, from the pop"`
	TTR   Duration `json:"ttr" doc:"The lease ends so long from now: 1 s to 24 h"`
}

// Release gives a task back without spending its attempt.
type Release struct {
	Token string `json:"token" doc:"The lease token, from the pop"`
	Delay Delay  `json:"delay,omitzero" doc:"Due so long from now; default: at once"`
}

// Fail spends the attempt of a task that was handed out.
type Fail struct {
	Token      string    `json:"token" doc:"The lease token, from the pop"`
	Error      string    `json:"error" doc:"Why; kept with the task"`
	Permanent  bool      `json:"permanent,omitempty" doc:"Trying again cannot help: the task fails at once"`
	RetryAfter *Duration `json:"retry_after,omitempty" doc:"Next attempt due so long from now; default: the backoff"`
}

// Register announces an address that is called with the tasks of some tags.
type Register struct {
	App     string   `json:"app" doc:"1 to 128 bytes; tasks saved with this app go only to its addresses"`
	Address string   `json:"address" doc:"URL that tasks are posted to"`
	Tags    []string `json:"tags" doc:"Whose tasks it takes; 1 to 100"`
	Secret  string   `json:"secret,omitempty" doc:"Signs calls: whsec_, base64 of 24 to 64 bytes; default: as before"`
	TTL     Duration `json:"ttl,omitzero" doc:"Life without a heartbeat, 5 s to 1 h; default: as before, or 30 s"`
}

// Receiver is a registered address. Its secret is never shown.
type Receiver struct {
	ID      ID       `json:"id"`
	App     string   `json:"app"`
	Address string   `json:"address"`
	Tags    []string `json:"tags"`
	Signed  bool     `json:"signed" doc:"It has a secret"`
	TTLMS   int64    `json:"ttl_ms" doc:"How long it lives without a heartbeat"`
	Created Time     `json:"created"`
	Expires Time     `json:"expires" doc:"Unless a heartbeat comes before"`
}

// ReceiverList lists them.
type ReceiverList struct {
	Receivers []Receiver `json:"receivers"`
}

// FromPopped is a task of a pop in JSON.
func FromPopped(p *delaytask.Popped) Popped {
	return Popped{
		ID: ID(p.ID), Token: p.Token().String(), Tag: p.Tag, Key: p.Key, App: p.App(), Attempt: p.Attempt,
		Crashes: p.Crashes, Priority: p.Priority, Expected: Time(p.Expected), Due: Time(p.Due),
		Headers: Headers(p.Headers), Schedule: fromScheduledRun(p.Schedule), Body: BodyOf(p.Body),
	}
}

// To is the task as Go has it. It returns [delaytask.ErrInvalidToken] for a token that is not the task's.
func (p *Popped) To() (delaytask.Task, error) {
	token, err := delaytask.ParseToken(p.Token)
	if err == nil && token.ID != int64(p.ID) {
		err = delaytask.ErrInvalidToken
	}
	return delaytask.Task{
		ID: token.ID, Tag: p.Tag, Key: p.Key, Body: p.Bytes(), Attempt: p.Attempt, Crashes: p.Crashes,
		Version: token.Version, Expected: p.Expected.Std(), Due: p.Due.Std(), Headers: withApp(p.Headers, p.App),
		Priority: p.Priority, Schedule: p.Schedule.to(),
	}, err
}
