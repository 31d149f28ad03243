package runqueue

import (
	"time"
)

// claims counts the rows that are claimed for slots and pops, and decides for how many more there is a place. A row
// takes a place when it is picked. It gives the place back when its result is on its way to the database.
type claims struct {
	tags *tagTable
	pops demands

	concurrency   int // slots
	open          int // tags that are served here and not paused
	claimed       int // rows that are claimed for a slot, or being claimed
	counted       int // sum of the tags' places: rows that run, or are claimed and not prefetched
	claimedAhead  int // places of slots that rows take ahead of their due times
	prefetchLimit int // rows that may be claimed beyond the slots now

	rate      rate
	peers     int           // nodes that share the work, this one among them
	roundTrip time.Duration // of claims, smoothed
}

// fairness is how many slots a tag may have for each that is free.
//
// Where several tags are served, none takes all slots, whatever its tasks do. The more slots a tag has, the more have
// to be free before it gets another one. So a tag with tasks of minutes leaves some to tags with tasks of milliseconds,
// and a second slow tag gets some, too. Switches with a shared buffer have the same rule, dynamic thresholds (Choudhury
// and Hahne, 1998).
const fairness = 8

// fair returns how many slots one tag may have beside what the others have. Of 64 slots it is 56 when they have none.
// The last slot goes to a tag only as its first.
func (c *claims) fair(others int) int {
	left := c.concurrency - others
	switch {
	case c.open < 2:
		return c.concurrency
	case left <= 0:
		return 0
	default:
		return max(fairness*left/(fairness+1), 1)
	}
}

// share returns how many slots rows of the tag may be claimed for, whatever is claimed beyond the slots.
func (c *claims) share(tag *tagQueue) int { return min(tag.limit, c.fair(c.counted-tag.counted)) }

// recount renews what counts as the tag's: slots that run its rows, or rows that are claimed for a slot and not beyond.
func (c *claims) recount(tag *tagQueue) {
	c.counted -= tag.counted
	tag.counted = max(tag.running, tag.claimed-tag.rate.prefetch)
	c.counted += tag.counted
}

// hasSlot reports whether a row of the tag may be claimed for a slot.
func (c *claims) hasSlot(tag *tagQueue) bool {
	return c.claimed < c.concurrency+c.prefetchLimit && tag.claimed < c.share(tag)+tag.prefetchLimit
}

// hasTaker reports whether a row of the tag may be claimed for a slot or a pop.
func (c *claims) hasTaker(tag *tagQueue) bool { return c.hasSlot(tag) || c.pops.takes(tag) > 0 }

// demand is what waiting pops want of one tag.
type demand struct {
	wanted   int  // rows, over all pops that wait
	reserved int  // rows that are being claimed for them
	turn     bool // the next row goes to a pop although a slot is free as well
}

func (d *demand) open() int { return max(d.wanted-d.reserved, 0) }

func (d *demand) met() int { return min(d.wanted, d.reserved) }

// demands sums up what waiting pops want. A pop that waits for any of many tags wants one row of each, and takes one in
// all.
type demands struct {
	asked int // rows; a pop of many tags counts once
	open  int // rows that are wanted and not reserved, over all tags
	met   int // rows that are wanted and reserved, likewise
}

// left returns how many more rows may be claimed for pops.
func (d *demands) left() int { return min(d.open, max(d.asked-d.met, 0)) }

// takes returns how many more rows of the tag may be claimed for pops.
func (d *demands) takes(tag *tagQueue) int { return min(tag.pops.open(), d.left()) }

// reserve changes how many rows are being claimed for pops by n.
func (d *demands) reserve(tag *tagQueue, n int) {
	d.account(tag, func(of *demand) { of.reserved += n })
}

// account keeps the sums over all tags in step.
func (d *demands) account(tag *tagQueue, change func(*demand)) {
	open, met := tag.pops.open(), tag.pops.met()
	change(&tag.pops)
	d.open += tag.pops.open() - open
	d.met += tag.pops.met() - met
}

// take gives the row to a slot or to a waiting pop. Where both are free they take turns.
func (c *claims) take(it *Item) {
	tag := it.tag
	it.ForPop = c.pops.takes(tag) > 0 && (tag.pops.turn || !c.hasSlot(tag))
	tag.pops.turn = !it.ForPop
	if it.ForPop {
		c.pops.reserve(tag, 1)
	} else {
		it.claimed = true
		tag.claimed++
		c.claimed++
		it.TagFull = tag.claimed >= tag.limit+tag.prefetchLimit && c.claimed < c.concurrency+c.prefetchLimit
		c.recount(tag)
	}
	c.countClaimedAhead(it, it.upcoming)
}

// unclaim ends what take began. It reports whether the row had a place.
func (c *claims) unclaim(it *Item) bool {
	c.countClaimedAhead(it, false)
	switch {
	case it.claimed:
		it.claimed = false
		it.tag.claimed--
		c.claimed--
	case it.ForPop:
		it.ForPop = false
		c.pops.reserve(it.tag, -1)
	default:
		return false
	}
	return true
}

// keptFree returns how many of n places rows that are not due yet leave free: an eighth, at least one. Such a row
// blocks its place until it is due, and rows that become due by then need one.
func keptFree(n int) int { return (n + 7) / 8 }

// mayClaimAhead reports whether a row of the tag may take a place before it is due.
func (c *claims) mayClaimAhead(tag *tagQueue) bool {
	takers := c.share(tag) + tag.pops.wanted
	if tag.claimedAhead >= takers-keptFree(takers)+tag.prefetchLimit {
		return false
	}
	most := c.concurrency - keptFree(c.concurrency) + c.prefetchLimit
	return c.pops.takes(tag) > 0 || c.hasSlot(tag) && c.claimedAhead < most
}

// countClaimedAhead counts a place that a row takes ahead of its due time, or no longer takes.
func (c *claims) countClaimedAhead(it *Item, ahead bool) {
	if it.claimedAhead == ahead {
		return
	}
	it.claimedAhead = ahead
	n := 1
	if !ahead {
		n = -1
	}
	it.tag.claimedAhead += n
	if it.claimed {
		c.claimedAhead += n
	}
}

// A claim takes a round trip, and many tasks are quicker than that. With one row claimed for each free slot, the
// slots would be empty most of the time. So rows are claimed beyond the free slots: as many as ended in the last
// moment and will again. A tag whose tasks are slow prefetches none, because another process could run them.
const (
	rateSpan     = 20 * time.Millisecond // the shortest that a rate is measured over
	prefetchSpan = 40 * time.Millisecond // the shortest that rows are prefetched for
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

// measure begins to count again when a span is over.
//
// The quick tasks of one claim end together, and the tasks of the next claim a round trip later. So a span is two round
// trips long at least, or every other one would be empty. A prefetch lasts as long, or the slots would be empty until
// the next claim is back. With several peers each prefetches for longer, in larger steps.
func (r *rate) measure(now time.Time, roundTrip time.Duration, peers int) {
	if took := now.Sub(r.since); took >= max(rateSpan, 2*roundTrip) {
		expected := int(min(int64(r.ended)*int64(prefetchSpan)/int64(took), maxPrefetch))
		lasts := time.Duration(peers) * max(prefetchSpan, 2*roundTrip)
		r.prefetch = int(min(int64(min(r.expected, expected))*int64(lasts)/int64(prefetchSpan), maxPrefetch))
		r.since, r.ended, r.expected = now, 0, expected
	}
}

// isZero reports whether nothing ended lately.
func (r *rate) isZero() bool { return r.ended == 0 && r.expected == 0 && r.prefetch == 0 }

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
	c.prefetchLimit = c.rate.limit(c.concurrency, c.claimed)
	for _, tag := range c.tags.active {
		tag.rate.measure(now, c.roundTrip, c.peers)
		c.recount(tag)
	}
	for _, tag := range c.tags.active {
		tag.prefetchLimit = tag.rate.limit(c.share(tag), tag.claimed)
	}
	c.tags.idle()
}
