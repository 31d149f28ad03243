package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/store"
)

// What a shell learns from a command.
const (
	exitDone     = 0
	exitFailed   = 1
	exitWrongUse = 2
)

var errInterrupted = errors.New("interrupted; what was already reported stays done")

// usageError is an error in what was typed: an unknown flag, command or argument, or a value that makes no sense.
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

// refused lists what the library says of values that it does not take. On a command line they were typed.
var refused = []error{
	delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidBody, delaytask.ErrBodyTooLarge,
	delaytask.ErrInvalidDelay, delaytask.ErrDelayTooLong, delaytask.ErrInvalidTime, delaytask.ErrInvalidID,
	delaytask.ErrInvalidTTR, delaytask.ErrInvalidMaxAttempts, delaytask.ErrInvalidPriority, delaytask.ErrInvalidHeaders,
	delaytask.ErrInvalidOption, delaytask.ErrInvalidConfig, store.ErrInvalidDSN, access.ErrInvalid,
}

func exitCode(err error) int {
	if _, wrong := errors.AsType[*usageError](err); wrong || isRefused(err) {
		return exitWrongUse
	}
	return exitFailed
}

func isRefused(err error) bool {
	return slices.ContainsFunc(refused, func(sentinel error) bool { return errors.Is(err, sentinel) })
}

// advice says what to do next about errors that do not say it themselves.
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
	{store.ErrTokenExists, "revoke it first, or choose another name"},
	{store.ErrNotFound, "delaytask token list shows what there is"},
	{delaytask.ErrOutcomeUnknown, "save again with --id and that id: it cannot be stored twice"},
}

// complain writes the error as one sentence, and after wrong use where to read more.
func (a *app) complain(cmd *cobra.Command, err error) {
	a.note("delaytask: %s\n", sentence(err))
	if exitCode(err) == exitWrongUse {
		a.note("See: %s --help\n", cmd.CommandPath())
	}
}

// sentence drops the package's name, which errors of the library begin with: the line begins with it anyway.
func sentence(err error) string {
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), "delaytask: ")
	text = strings.ReplaceAll(text, ": delaytask: ", ": ")
	for _, hint := range advice {
		if errors.Is(err, hint.about) {
			return text + "; " + hint.next
		}
	}
	return text
}
