package store

import (
	"context"
	"errors"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

func TestAWriteIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	f := func(want int, classes ...row.Class) {
		t.Helper()
		calls := 0
		err := repeat(t.Context(), func() error {
			calls++
			if calls > len(classes) {
				return nil
			}
			return &row.Error{Class: classes[calls-1], Op: "write", Err: errors.New("failed")}
		})
		if known := calls > len(classes); calls != want || known != (err == nil) {
			t.Errorf("%v: %d calls, %v; want %d", classes, calls, err, want)
		}
	}
	f(1)
	f(2, row.ClassUnknown)
	f(2, row.ClassNotApplied)
	f(3, row.ClassUnknown, row.ClassDuplicate)
	f(3, row.ClassUnknown, row.ClassUnknown, row.ClassUnknown)
	f(1, row.ClassCaller)
	f(1, row.ClassLocked) // it has waited for a second by then
	f(2, row.ClassUnknown, row.ClassOperator)

	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := repeat(ctx, func() error {
		calls++
		cancel()
		return context.Canceled
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls after the context has ended, %v", calls, err)
	}
}
