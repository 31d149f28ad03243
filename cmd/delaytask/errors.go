package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// The exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitWrongUse = 2
)

// asksForJSON reports whether --json was given. The parsed flags know it only when all of them are valid.
func asksForJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// The errors of the command itself.
var (
	errInterrupted = errors.New("interrupted; what was already reported stays done")
	errDeclined    = errors.New("nothing was changed; add --yes to go on without being asked")
	errPartly      = errors.New("each for a reason of its own")
	errNoDatabase  = errors.New("there is no database")
	errNoTables    = fmt.Errorf("%w", errNoDatabase)            // the file is there
	errFindings    = errors.New("the database needs attention") // as --fail-on of doctor says
	errUnhealthy   = errors.New("the service does not answer as it should")
)

// usageError is a wrong use: an unknown flag, command or argument, or an invalid value.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func misused(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

func misusedf(format string, args ...any) error { return misused(fmt.Errorf(format, args...)) }

// unreachable is an error before a doctor could examine anything.
type unreachable struct{ error }

func (e unreachable) Unwrap() error { return e.error }

// pointedError shows where a line is wrong, below its sentence.
type pointedError struct {
	error
	line   string
	column int
}

func (e *pointedError) Unwrap() error { return e.error }

// caret is the line, and a mark under the place.
func (e *pointedError) caret() string {
	before := oneLine(e.line[:min(e.column-1, len(e.line))])
	return fmt.Sprintf("  %s\n  %s^\n", oneLine(e.line), strings.Repeat(" ", runewidth.StringWidth(before)))
}

// refused lists the library's errors about invalid arguments. On a command line they are wrong use.
var refused = []error{
	delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidBody, delaytask.ErrBodyTooLarge,
	delaytask.ErrInvalidDelay, delaytask.ErrDelayTooLong, delaytask.ErrInvalidTime, delaytask.ErrInvalidID,
	delaytask.ErrInvalidTTR, delaytask.ErrInvalidMaxAttempts, delaytask.ErrInvalidPriority, delaytask.ErrInvalidHeaders,
	delaytask.ErrInvalidOption, delaytask.ErrInvalidCursor, delaytask.ErrInvalidSpec, delaytask.ErrInvalidScheduleName,
	delaytask.ErrInvalidRange, delaytask.ErrRedacted, scheduler.ErrInvalidConfig, sqlstore.ErrInvalidDSN,
	access.ErrInvalid,
}

func exitCode(err error) int {
	if _, unexamined := errors.AsType[unreachable](err); unexamined || isMisuse(err) {
		return exitWrongUse
	}
	return exitFailed
}

func isMisuse(err error) bool {
	_, wrong := errors.AsType[*usageError](err)
	return wrong || isRefused(err)
}

func isRefused(err error) bool {
	return slices.ContainsFunc(refused, func(sentinel error) bool { return errors.Is(err, sentinel) })
}

// advice is what to do next, for errors that do not say it themselves.
var advice = []struct {
	about error
	next  string
}{
	{delaytask.ErrNotFound, "delaytask list shows what there is"},
	{delaytask.ErrDuplicate, "cancel or reschedule that task, or choose another key"},
	{delaytask.ErrConflict, "save again without --id"},
	{delaytask.ErrFinished, "delaytask get shows how it ended"},
	{delaytask.ErrNotPending, "delaytask get shows where it stands"},
	{delaytask.ErrNotFailed, "only failed tasks can be retried; delaytask get shows where it stands"},
	{delaytask.ErrScheduleNotFound, "delaytask schedule list shows what there is"},
	{delaytask.ErrScheduleExists, "delaytask schedule update changes it"},
	{delaytask.ErrScheduleState, "delaytask schedule show shows where it stands"},
	{sqlstore.ErrTokenExists, "revoke it first, or choose another name"},
	{sqlstore.ErrNotFound, "delaytask token list shows what there is"},
	{audit.ErrStopped, "delaytask audit --action bulk.stop shows by whom; to go on, run the command again"},
	{delaytask.ErrFileReplaced, "put the old file back to keep its tasks, then run the command again"},
	{delaytask.ErrNotStored, "delaytask doctor looks at the database; then save again"},
	{delaytask.ErrOutcomeUnknown, "save again with --id and that id: it cannot be stored twice"},
}

// codes maps errors that only the command returns. The first match wins.
var codes = []struct {
	about error
	code  string
}{
	{errInterrupted, "interrupted"},
	{audit.ErrStopped, "stopped"},
	{errDeclined, "declined"},
	{errPartly, "partly_failed"},
	{errNoDatabase, "no_database"},
	{errFindings, "findings"},
	{errUnhealthy, wire.CodeUnavailable},
	{sqlstore.ErrInvalidDSN, "invalid_dsn"},
	{sqlstore.ErrTokenExists, "token_exists"},
	{sqlstore.ErrNotFound, wire.CodeNotFound},
}

// failure is an error in JSON. Its code never changes its meaning. It is the code of the HTTP API, if that has the
// error.
type failure struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	TaskID  wire.ID `json:"task_id,omitzero"` // the one that carries the key, or to save again with
	Line    int     `json:"line,omitempty"`   // of a schedule, from 1
	Column  int     `json:"column,omitempty"` // in bytes, from 1
}

func failureOf(err error) *failure {
	f := &failure{Message: sentence(err)}
	for _, known := range codes {
		if errors.Is(err, known.about) {
			f.Code = known.code
			return f
		}
	}
	p, known := errors.AsType[*wire.Problem](err) // of a service
	if !known {
		p, known = operate.Problem(err)
	}
	switch {
	case known:
		f.Code, f.TaskID = p.Code, p.TaskID
		if len(p.Errors) > 0 {
			f.Line, f.Column = p.Errors[0].Line, p.Errors[0].Column
		}
	case isMisuse(err):
		f.Code = "wrong_use"
	default:
		f.Code = "failed"
	}
	return f
}

// printError prints the error: as one sentence, and after wrong use where to read more; or as JSON.
func (a *app) printError(cmd *cobra.Command, err error) {
	if a.json {
		_ = encode(a.stderr, map[string]*failure{"error": failureOf(err)}, "") // a line, as the log has
		return
	}
	a.note("delaytask: %s\n", sentence(err))
	if wrong, ok := errors.AsType[*pointedError](err); ok {
		a.note("%s", wrong.caret())
	}
	if isMisuse(err) {
		a.note("See: %s --help\n", cmd.CommandPath())
	}
}

// sentence is an error without secrets, and without the prefix of the library's errors: the line begins with the same
// word.
func sentence(err error) string {
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), "delaytask: ")
	text = redact.Text("", strings.ReplaceAll(text, ": delaytask: ", ": "))
	for _, hint := range advice {
		if errors.Is(err, hint.about) {
			return text + "; " + hint.next
		}
	}
	return text
}
