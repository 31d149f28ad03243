package role

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/processor"
)

// operation is what a task's body tells its processor to do: "UNIQUE VERB MILLISECONDS". Its texts must not change:
// older programs read them too.
type operation struct {
	verb verb
	span time.Duration
}

type verb string

const (
	succeed           verb = "succeed"
	slow              verb = "slow"      // succeeds after the span, if its context lets it
	ignore            verb = "ignore"    // the same, and ignores its context
	failOnce          verb = "fail-once" // at the first attempt
	fail              verb = "fail"      // always
	permanent         verb = "permanent" // fails, not to be tried again
	explode           verb = "panic"     // at the first attempt
	snooze            verb = "snooze"    // at its first run
	crashAtStart      verb = "die-at-start"
	crashBeforeSettle verb = "die-before-settle"
	crashAfterReturn  verb = "die-after-return"
	poison            verb = "poison" // ends its process, always
)

// share is how many of a thousand tasks do it.
type share struct {
	verb  verb
	tag   int // of Tags
	parts int
	most  time.Duration // of the span
}

// shares add up to 1000 with succeed. A task that was executing in two processes that crashed is on probation, so a run
// with more such tasks takes minutes to drain.
var shares = []share{
	{slow, 1, 120, 1500 * time.Millisecond}, // at a kill, a few of them are executing in each process
	{ignore, 1, 5, 6 * time.Second},         // longer than a lease
	{failOnce, 2, 30, 0},
	{fail, 2, 4, 0},
	{permanent, 2, 6, 0},
	{explode, 2, 20, 0},
	{snooze, 2, 10, 300 * time.Millisecond},
}

// crashes are what a saver asks for at a pace of its own: each ends a process.
var crashes = []share{
	{verb: crashAtStart, tag: deadlyTag},
	{verb: crashBeforeSettle, tag: deadlyTag},
	{verb: crashAfterReturn, tag: deadlyTag, most: 40 * time.Millisecond},
}

func drawn(r *rand.Rand) (tag string, d operation) {
	n := r.IntN(1000)
	for _, s := range shares {
		if n -= s.parts; n < 0 {
			return s.with(r)
		}
	}
	return Tags[0], operation{verb: succeed}
}

// easy draws the operation of a task that is saved among many: nine of ten just succeed.
func easy(r *rand.Rand) (tag string, d operation) {
	if r.IntN(10) > 0 {
		return Tags[0], operation{verb: succeed}
	}
	return drawn(r)
}

func (s share) with(r *rand.Rand) (tag string, d operation) {
	d = operation{verb: s.verb}
	if s.most > 0 {
		d.span = time.Duration(1+r.Int64N(s.most.Milliseconds())) * time.Millisecond
	}
	return Tags[s.tag], d
}

// body is a text that no other task of the run has.
func (d operation) body(unique string) string {
	return fmt.Sprintf("%s %s %d", unique, d.verb, d.span.Milliseconds())
}

// parse reads a body. Any other text succeeds.
func parse(body string) operation {
	fields := strings.Fields(body)
	if len(fields) != 3 {
		return operation{verb: succeed}
	}
	ms, err := strconv.Atoi(fields[2])
	if err != nil {
		return operation{verb: succeed}
	}
	return operation{verb(fields[1]), time.Duration(ms) * time.Millisecond}
}

var errAsked = errors.New("as the task's body says")

func (d operation) do(ctx context.Context, task *processor.Task) error {
	switch d.verb {
	case slow:
		return lateness.Pass(ctx, d.span)
	case ignore:
		return lateness.Pass(context.WithoutCancel(ctx), d.span)
	case failOnce:
		if task.Attempt == 1 {
			return errAsked
		}
	case fail:
		return errAsked
	case permanent:
		return processor.Permanent(errAsked)
	case snooze:
		if task.Version == 1 {
			return processor.Snooze(d.span)
		}
	}
	return nil
}
