package runqueue

import "time"

// A claim takes a round trip, and tasks are often quicker than that: with one row claimed for each free slot, the slots would be
// empty most of the time. So rows are claimed beyond the free slots, as many as came to an end here in the last moment and will
// again. A tag whose tasks are slow has no surplus: it must not keep rows that another process could run.
const (
	flowSpan    = 20 * time.Millisecond // over which the flow is measured, at least
	surplusSpan = 40 * time.Millisecond // for which rows are claimed beyond the slots, at least
	maxSurplus  = 3 * MaxClaim
	// A surplus is claimed in so many steps, a few milliseconds' worth each.
	surplusSteps = int(surplusSpan / (5 * time.Millisecond))
)

// flow measures how many rows come to an end. It believes the smaller of the last two spans: slow tasks that were begun together
// also come to an end together, once.
type flow struct {
	since    time.Time
	ended    int // since then
	expected int // in surplusSpan, by the last span
	surplus  int // rows that may be claimed beyond the slots
}

// measure counts anew when a span is over. The quick tasks of one claim end together, and the next ones a round trip of a claim later:
// a span is two of these long at least, or every other one would be empty, and the surplus lasts as long, or the slots would be empty
// until the next claim is back. Of a company of nodes each takes a longer surplus, in larger steps.
func (f *flow) measure(now time.Time, roundTrip time.Duration, company int) {
	if took := now.Sub(f.since); took >= max(flowSpan, 2*roundTrip) {
		expected := int(min(int64(f.ended)*int64(surplusSpan)/int64(took), maxSurplus))
		lasts := time.Duration(company) * max(surplusSpan, 2*roundTrip)
		f.surplus = int(min(int64(min(f.expected, expected))*int64(lasts)/int64(surplusSpan), maxSurplus))
		f.since, f.ended, f.expected = now, 0, expected
	}
}

// still reports whether nothing came to an end lately.
func (f *flow) still() bool { return f.ended == 0 && f.expected == 0 && f.surplus == 0 }

// within returns how many rows come to an end in so long a time, at the pace of the last span.
func (f *flow) within(d time.Duration) int {
	return int(int64(f.expected) * int64(d) / int64(surplusSpan))
}

// beyond returns how many rows may be claimed beyond so many slots now, when as many as busy are. The surplus is claimed step by
// step: a claim for each row that came to an end would cost more than the row.
func (f *flow) beyond(slots, busy int) int {
	if slots == 0 || slots+f.surplus-busy < f.surplus/surplusSteps {
		return 0
	}
	return f.surplus
}

// measure settles how many rows the next claim may take.
func (l *lines) measure(now time.Time) {
	l.flow.measure(now, l.roundTrip, l.company)
	l.beyond = l.flow.beyond(l.workers, l.busy)
	for _, line := range l.working {
		line.flow.measure(now, l.roundTrip, l.company)
		l.weigh(line)
	}
	for _, line := range l.working {
		line.beyond = line.flow.beyond(l.share(line), line.busy)
	}
	l.rest()
}
