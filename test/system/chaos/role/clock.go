package role

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Clock is the database's clock beside this machine's. The zero value is the same clock.
type Clock struct {
	Ahead time.Duration `json:"ahead"`
	Slew  float64       `json:"slew"` // the share by which it runs fast, or slow where negative
	From  time.Time     `json:"from"` // when the slew began, by this machine's clock
}

// At returns the database's time at a moment of this machine's clock.
func (c Clock) At(moment time.Time) time.Time {
	return moment.Add(c.Ahead + part(c.Slew, moment.Sub(c.From)))
}

// Moment is the inverse of At.
func (c Clock) Moment(database time.Time) time.Time {
	moment := database.Add(-c.Ahead)
	return moment.Add(-part(c.Slew/(1+c.Slew), moment.Sub(c.From)))
}

func part(of float64, d time.Duration) time.Duration { return time.Duration(of * float64(d)) }

// listener is a store as the engine sees it. It notes when the clock was read.
type listener struct {
	store.Store
	slew float64

	mu     sync.Mutex
	sent   time.Time // when the last answer was asked for
	took   time.Duration
	before time.Duration // doubt before it came
	first  time.Time     // when the first answer came
	least  time.Duration // the database's clock is at least so far ahead, if it is not slewed
	most   time.Duration // and at most so far
	shown  bool          // that it is slewed
}

const (
	// ownSlew is by how much a process allows for a slew of its own clock during a request, which it cannot tell from
	// one of the database's.
	ownSlew = 0.12
	// stalled is for how long a loaded machine may stop the process between an answer and its use, which counts as part
	// of the request.
	stalled = 250 * time.Millisecond
)

// evenly is the share by which the database's clock may run fast or slow without any doubt.
const evenly = 0.001

func (l *listener) Now(ctx context.Context) (row.Reading, error) {
	sent := time.Now()
	reading, err := l.Store.Now(ctx)
	l.observe(reading, sent, err)
	return reading, err
}

func (l *listener) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	sent := time.Now()
	claimed, err := l.Store.Claim(ctx, c)
	l.observe(claimed.Reading, sent, err)
	return claimed, err
}

func (l *listener) observe(reading row.Reading, sent time.Time, err error) {
	if err != nil {
		return
	}
	if !reading.Asked.IsZero() {
		sent = reading.Asked
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !sent.After(l.sent) {
		return
	}
	received, at := time.Now(), reading.Time.Std()
	if l.sent.IsZero() {
		l.first, l.least, l.most = received, math.MinInt64, math.MaxInt64
	}
	l.before, l.sent, l.took = l.sinceAnswer(), sent, received.Sub(sent)
	l.least, l.most = max(l.least, at.Sub(received)), min(l.most, at.Sub(sent)+part(ownSlew, l.took+stalled))
	l.shown = l.shown || l.least-l.most > part(evenly, received.Sub(l.first))
}

// doubt is by how much this process may err about the database's time: by the slew since the last answer, until one has
// shown it, and by what the request has hidden. In the moment of an answer it may still go by the one before.
func (l *listener) doubt() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.sinceAnswer(), l.before)
}

func (l *listener) sinceAnswer() time.Duration {
	switch {
	case math.Abs(l.slew) <= evenly || l.sent.IsZero():
		return 0
	case l.shown:
		return l.took
	}
	return part(math.Abs(l.slew), time.Since(l.sent)) + l.took
}
