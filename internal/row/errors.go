package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Class says what an error of a store means for its statement, and so what the caller may do next.
type Class uint8

const (
	// ClassUnknown: the statement may or may not have been applied, and may still be applied later. Read back before
	// deciding.
	ClassUnknown Class = iota
	// ClassNotApplied: nothing changed. The whole unit may be tried again after a pause.
	ClassNotApplied
	// ClassLocked: nothing changed because another transaction holds a lock on one of the rows.
	ClassLocked
	// ClassDuplicate: a unique key refused the statement. Nothing changed.
	ClassDuplicate
	// ClassCaller: the data was refused. Trying again cannot help.
	ClassCaller
	// ClassOperator: an operator has to act (privileges, a missing table, a full disk). Nothing changed.
	ClassOperator
)

var classes = []string{"unknown", "not_applied", "locked", "duplicate", "caller", "operator"}

func (c Class) String() string { return textOf(classes, c) }

// Error is what every method of a store returns when it fails.
type Error struct {
	Class Class
	Op    string // what was tried, in plain words
	Hint  string // what an operator can do, or ""
	Err   error
}

func (e *Error) Error() string {
	if e.Hint != "" {
		return fmt.Sprintf("%s: %v (%s)", e.Op, e.Err, e.Hint)
	}
	return fmt.Sprintf("%s: %v", e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of any error of a store. An error that is not an *Error is of unknown outcome: a context
// that ended during a statement, or an unforeseen fault.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassUnknown
}

// IsOneOf reports whether the class of an error is one of these.
func IsOneOf(err error, classes ...Class) bool { return slices.Contains(classes, ClassOf(err)) }

// Ended reports whether err says only that the caller's context ended.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
