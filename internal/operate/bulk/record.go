package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/wire"
)

// Change changes many tasks, and calls progress with the number so far. It returns how many it has changed, also
// beside an error.
type Change func(ctx context.Context, progress func(done int)) (int, error)

// Record makes a change whose entry is in the audit log, and ends the entry. Meanwhile it tells there how far the
// change is. It returns [ErrStopped] when a caller has stopped the change from there, and an error that wraps it when
// ctx has ended. Without an entry it only makes the change.
func Record(ctx context.Context, e *audit.Entry, about About, progress func(done int), change Change) (int, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var done atomic.Int64
	var reports sync.WaitGroup
	running, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	if e != nil {
		reports.Go(func() { e.Progress(running, about.text(), &done, func() { end(ErrStopped) }) })
	}
	n, err := change(ctx, func(n int) {
		done.Store(int64(n))
		progress(n)
	})
	if cause := context.Cause(ctx); err != nil && cause != nil { // what that has interrupted is not told
		if err = cause; !errors.Is(cause, ErrStopped) {
			err = fmt.Errorf("%w: %w", ErrStopped, cause)
		}
	}
	over()
	reports.Wait()
	e.End(ctx, int64(n), err)
	return n, err
}

// stored is an [About] as its entry has it. A later version may add members.
type stored struct {
	Filter string    `json:"filter,omitempty"` // as a query
	Tasks  int       `json:"tasks,omitempty"`
	Capped bool      `json:"capped,omitempty"`
	AsOf   time.Time `json:"as_of,omitzero"`
}

// text is what the entry says of the change, beside who makes which.
func (a *About) text() string {
	// Of these types each value has a text.
	text, _ := json.Marshal(stored{wire.FilterValues(&a.Filter).Encode(), a.Tasks, a.Capped, a.AsOf.UTC()})
	return string(text)
}

// read reads what an entry says. What cannot be read is left zero.
func (a *About) read(text string) {
	var s stored
	if json.Unmarshal([]byte(text), &s) != nil {
		return
	}
	if query, err := url.ParseQuery(s.Filter); err == nil {
		a.Filter, _ = wire.ParseFilter(query)
	}
	a.Tasks, a.Capped, a.AsOf = s.Tasks, s.Capped, s.AsOf
}
