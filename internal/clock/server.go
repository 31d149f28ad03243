package clock

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// server is what is known of the clock of one server.
type server struct {
	lower, upper line
	heard        time.Time // when its last reading arrived
}

// observe returns the bounds that one reading yields. A reading is cut to the microsecond, so the server's time may
// already have been almost one further.
func observe(r row.Reading, sent, received time.Time) server {
	return server{
		lower: line{at: received, value: r.Time},
		upper: line{at: sent, value: r.Time + 1},
		heard: received,
	}
}

// apart returns by how much the two clocks differ for sure, or a negative number when they may agree.
func (s server) apart(other server, now time.Time, drift float64) time.Duration {
	ahead := s.lower.atLeast(now, drift) - other.upper.atMost(now, drift)
	behind := other.lower.atLeast(now, drift) - s.upper.atMost(now, drift)
	return time.Duration(min(max(ahead, behind), farMicros)) * time.Microsecond
}

// narrow returns the intersection of the bounds: of each, the tighter one.
func (s server) narrow(fresh server, now time.Time, drift float64) server {
	if s.lower.lowerPosition(now, drift).before(fresh.lower.lowerPosition(now, drift)) {
		s.lower = fresh.lower
	}
	if fresh.upper.upperPosition(now, drift).before(s.upper.upperPosition(now, drift)) {
		s.upper = fresh.upper
	}
	if fresh.heard.After(s.heard) {
		s.heard = fresh.heard
	}
	return s
}
