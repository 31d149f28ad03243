package runqueue

import "time"

// A claim takes a round trip, and many tasks are quicker than that. With one row claimed for each free slot, the
// slots would be empty most of the time. So rows are claimed beyond the free slots: as many as ended in the last
// moment and will again. A tag whose tasks are slow prefetches none, because another process could run them.
const (
	rateSpan     = 20 * time.Millisecond // over which a rate is measured, at least
	prefetchSpan = 40 * time.Millisecond // for which rows are prefetched, at least
	maxPrefetch  = 3 * MaxClaim
	// prefetchSteps is how many claims a prefetch takes: one for a few milliseconds' worth of rows.
	prefetchSteps = int(prefetchSpan / (5 * time.Millisecond))
)

// rate measures how many rows end. It believes the smaller of the last two spans, because slow tasks that began
// together end together once.
type rate struct {
	since    time.Time
	ended    int // since then
	expected int // in prefetchSpan, by the last span
	prefetch int // rows that may be claimed beyond the slots
}

// measure begins to count anew when a span is over.
//
// The quick tasks of one claim end together, and those of the next claim a round trip later. So a span is two round
// trips long at least, or every other one would be empty. A prefetch lasts as long, or the slots would be empty until
// the next claim is back. Of several peers each prefetches for longer, in larger steps.
func (r *rate) measure(now time.Time, roundTrip time.Duration, peers int) {
	if took := now.Sub(r.since); took >= max(rateSpan, 2*roundTrip) {
		expected := int(min(int64(r.ended)*int64(prefetchSpan)/int64(took), maxPrefetch))
		lasts := time.Duration(peers) * max(prefetchSpan, 2*roundTrip)
		r.prefetch = int(min(int64(min(r.expected, expected))*int64(lasts)/int64(prefetchSpan), maxPrefetch))
		r.since, r.ended, r.expected = now, 0, expected
	}
}

// still reports whether nothing ended lately.
func (r *rate) still() bool { return r.ended == 0 && r.expected == 0 && r.prefetch == 0 }

// within returns how many rows end in so long a time, at the rate of the last span.
func (r *rate) within(d time.Duration) int {
	return int(int64(r.expected) * int64(d) / int64(prefetchSpan))
}

// limit returns how many rows may be claimed beyond so many slots now, when as many as claimed are. It is zero until
// a step is free: a claim for each row that ended would cost more than the row.
func (r *rate) limit(slots, claimed int) int {
	if slots == 0 || slots+r.prefetch-claimed < r.prefetch/prefetchSteps {
		return 0
	}
	return r.prefetch
}

// measure decides how many rows the next claim may take beyond the slots.
func (c *claims) measure(now time.Time) {
	c.rate.measure(now, c.roundTrip, c.peers)
	c.prefetchLimit = c.rate.limit(c.workers, c.claimed)
	for _, tag := range c.tags.active {
		tag.rate.measure(now, c.roundTrip, c.peers)
		c.recount(tag)
	}
	for _, tag := range c.tags.active {
		tag.prefetchLimit = tag.rate.limit(c.share(tag), tag.claimed)
	}
	c.tags.idle()
}
