package sqlstore

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

// repeats is how often a write that may be repeated is tried: a reply is lost or a deadlock met rarely, and hardly ever twice
// in a row. What lasts longer is for the caller to wait for.
const repeats = 3

// repeat runs a write that changes nothing when it is run again, until its outcome is known. A row of somebody else that was
// written since the write looked for it is met the next time.
func repeat(ctx context.Context, write func() error) error {
	var err error
	for range repeats {
		if err = write(); err == nil || ctx.Err() != nil {
			return err
		}
		switch row.ClassOf(err) {
		case row.ClassUnknown, row.ClassNotApplied, row.ClassDuplicate:
		default:
			return err
		}
	}
	return err
}
