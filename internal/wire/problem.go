package wire

import "net/http"

// Problem is the answer to a request that was not served (RFC 9457, application/problem+json).
type Problem struct {
	Title  string   `json:"title" doc:"Of the status"`
	Status int      `json:"status"`
	Code   string   `json:"code" doc:"For programs; it never changes its meaning"`
	Detail string   `json:"detail" doc:"For people: what is wrong, and what to do"`
	TaskID ID       `json:"task_id,omitzero" doc:"The task meant: for outcome_unknown the id to save again with"`
	Errors []Detail `json:"errors,omitempty" doc:"Where in the request, when it is more than one thing or one of many"`

	NotStored bool `json:"not_stored,omitzero" doc:"This save stored nothing; an earlier one may have"`
}

// NewProblem returns a problem with the title of its status.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// Detail is one thing that is wrong.
type Detail struct {
	Location string `json:"location,omitempty" doc:"As query.max, path.id, body or line 17"`
	Message  string `json:"message"`
	Line     int    `json:"line,omitempty" doc:"Of a schedule that is wrong, from 1"`
	Column   int    `json:"column,omitempty" doc:"Of the line, in bytes from 1"`
}

// Error is the detail, so that a problem is an error in Go.
func (p *Problem) Error() string { return p.Detail }

// The codes of problems.
const (
	// The request cannot be read.
	CodeInvalidJSON          = "invalid_json"
	CodeInvalidParameter     = "invalid_parameter"
	CodeInvalidHeader        = "invalid_header"
	CodeUnreadableBody       = "unreadable_body"
	CodeRequestTimeout       = "request_timeout"
	CodeRequestTooLarge      = "request_too_large"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeNoSuchRoute          = "no_such_route"
	CodeMethodNotAllowed     = "method_not_allowed"

	// The caller lacks a right.
	CodeUnauthorized      = "unauthorized"
	CodeForbidden         = "forbidden"
	CodeCrossOrigin       = "cross_origin"
	CodeMisdirected       = "misdirected_request"
	CodeBlockedAddress    = "blocked_address"
	CodeSecretsImpossible = "secrets_impossible"
	CodeTooManyReceivers  = "too_many_receivers"
	CodeTooManyRequests   = "too_many_requests"

	// An argument is invalid.
	CodeInvalidTag         = "invalid_tag"
	CodeInvalidKey         = "invalid_key"
	CodeInvalidBody        = "invalid_body"
	CodeRedacted           = "redacted"
	CodeBodyTooLarge       = "body_too_large"
	CodeInvalidDelay       = "invalid_delay"
	CodeDelayTooLong       = "delay_too_long"
	CodeInvalidTime        = "invalid_time"
	CodeInvalidID          = "invalid_id"
	CodeInvalidTTR         = "invalid_ttr"
	CodeInvalidMaxAttempts = "invalid_max_attempts"
	CodeInvalidPriority    = "invalid_priority"
	CodeInvalidHeaders     = "invalid_headers"
	CodeInvalidOption      = "invalid_option"
	CodeInvalidSpec        = "invalid_spec"
	CodeInvalidRange       = "invalid_range"
	CodeInvalidToken       = "invalid_token"
	CodeInvalidCursor      = "invalid_cursor"
	CodeInvalidAddress     = "invalid_address"
	CodeBatchTooLarge      = "batch_too_large"

	CodeInvalidScheduleName = "invalid_schedule_name"

	// The state of the task does not allow it.
	CodeDuplicate           = "duplicate"
	CodeConflict            = "conflict"
	CodeChunkRefused        = "chunk_refused"
	CodeIdempotencyMismatch = "idempotency_mismatch"
	CodeLeaseLost           = "lease_lost"
	CodeNotFound            = "not_found"
	CodeNotPending          = "not_pending"
	CodeFinished            = "finished"
	CodeNotFailed           = "not_failed"
	CodeContended           = "contended"
	CodeVersionChanged      = "version_changed"
	CodeBroken              = "broken"

	// The state of the schedule does not allow it.
	CodeScheduleNotFound = "schedule_not_found"
	CodeScheduleOwned    = "schedule_owned"
	CodeScheduleBusy     = "schedule_busy"
	CodeScheduleState    = "schedule_state"
	CodeScheduleExists   = "schedule_exists"
	CodeScheduleChanged  = "schedule_changed"

	// It is about a bulk change.
	CodeBulkNotFound       = "bulk_not_found"
	CodeBulkUntold         = "bulk_untold" // it cannot be stopped from here
	CodeTooManyBulkChanges = "too_many_bulk_changes"

	// The service is unavailable.
	CodeOutcomeUnknown = "outcome_unknown"
	CodeFileReplaced   = "file_replaced" // the service has to be restarted
	CodeNotStored      = "not_stored"    // nothing was sent to the database
	CodeNotRecorded    = "not_recorded"  // nothing was done, because the audit log could not be written
	CodeOverloaded     = "overloaded"
	CodeStopping       = "stopping"
	CodeNotReady       = "not_ready"
	CodeUnavailable    = "unavailable"
	CodeInternal       = "internal"
)

// GetStatus and ContentType let frameworks that know such methods answer with a problem.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns a Retry-After for problems that may pass.
func (p *Problem) GetHeaders() http.Header {
	if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
		return nil
	}
	return http.Header{"Retry-After": {"1"}}
}

// ContentType is application/problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
