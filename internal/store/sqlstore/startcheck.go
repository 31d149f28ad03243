package sqlstore

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// Warning is something that works, but not as well as it should.
type Warning struct {
	Code  string // for programs
	Is    string // what was found
	Means string // what follows from it
	Mend  string // what to do
}

func (w Warning) String() string { return w.Is + ": " + w.Means + "; " + w.Mend }

// StartCheck is one part of [Store.Check] or [Store.CheckService].
type StartCheck struct {
	Name string
	run  check
}

// The names of checks that others depend on.
const (
	CheckProduct    = "product"    // on shards no other check has an answer
	CheckSchema     = "schema"     // nor without the tables
	CheckPrivileges = "privileges" // their hint names no account
)

// check returns everything that it finds: its error may join several.
type check func(context.Context) ([]Warning, error)

// Run returns everything that is wrong. Each of the errors is a *row.Error.
func (c StartCheck) Run(ctx context.Context) ([]Warning, []error) {
	warnings, err := c.run(ctx)
	var errs []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	} else if err != nil {
		errs = []error{err}
	}
	for i := range errs {
		errs[i] = classify("check the database", errs[i])
	}
	return warnings, errs
}

// refuse returns what is wrong, with a hint of what an operator does about it.
func refuse(hint, format string, args ...any) error {
	return &row.Error{Class: row.ClassOperator, Op: "check the database", Hint: hint, Err: fmt.Errorf(format, args...)}
}
