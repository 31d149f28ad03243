package overview

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/forecast"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/standing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

const (
	mostCounted  = 1000   // of a tag and status, and of what is overdue of a tag
	mostTags     = 500    // whose places are read: a server enters the index for each
	mostPlaces   = 10_000 // of all tags together
	leastPlaces  = 10     // of a tag, however many there are
	mostFailures = 1000   // whose errors are read
	mostExpired  = 200
	mostSilent   = 10   // processes whose leases are read
	mostLeases   = 5000 // of all of them

	soon        = time.Minute
	failureSpan = 10 * time.Minute // that counts as now
	fewRetries  = 10               // attempts within failureSpan that are no finding
)

// perTag divides what may be read among tags.
func perTag(all, least, most, tags int) int { return min(most, max(least, all/max(tags, 1))) }

func (r *reading) readCounts(ctx context.Context) (err error) {
	r.counts, err = listing.Counts(ctx, r.from, mostCounted, row.Pending, row.Executing, row.Failed)
	if err != nil {
		return err
	}
	return r.cache.ended.refresh(r.now, r.now.Add(keepEnded), func() ([]listing.TagCount, error) {
		return listing.Counts(ctx, r.from, mostCounted, row.Completed, row.Cancelled)
	})
}

// tagsWith returns the tags that have rows of the status.
func (r *reading) tagsWith(status row.Status, which func(listing.TagCount) bool) (tags []row.TagCount, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.missing[report.PartCounts]; err != nil && r.counts == nil {
		return nil, err
	}
	for _, c := range r.counts {
		if c.Status == status && which(c) {
			tags = append(tags, c.TagCount)
		}
	}
	return tags, nil
}

// readDue reads what is overdue and what falls due soon, up to a bound of each tag. A row without a due time is in
// neither, and hides those after it. Of very many tags it reads those that are due first. Of the others it knows the
// oldest task.
func (r *reading) readDue(ctx context.Context) error {
	r.due = map[string]*dueSoon{}
	end := r.now.Add(soon)
	tags, err := r.tagsWith(row.Pending, func(c listing.TagCount) bool { return c.Oldest < end })
	if err != nil || len(tags) == 0 {
		return err
	}
	read := listing.Foremost(tags, mostTags)
	if len(read) < len(tags) {
		for _, c := range tags {
			d := &dueSoon{moreOverdue: true, moreNext: true, oldest: row.Place{Due: c.Oldest}}
			if c.Oldest >= r.now {
				d.moreOverdue, d.next = false, 1
			} else if !c.Oldest.IsZero() {
				d.overdue = 1
			}
			r.due[c.Tag] = d
		}
	}
	spans := make([]row.Span, 0, 2*len(read))
	for _, i := range read {
		spans = append(spans,
			row.Span{Status: row.Pending, Tag: tags[i].Tag, Padded: true, From: row.MinTime, To: r.now},
			row.Span{Status: row.Pending, Tag: tags[i].Tag, Padded: true, From: r.now, To: end})
	}
	most := perTag(mostPlaces, leastPlaces, mostCounted, len(spans))
	places, err := r.from.Places(ctx, spans, most+1)
	if err != nil {
		return err
	}
	for i, at := range read {
		overdue, next := places[2*i], places[2*i+1]
		d := &dueSoon{moreOverdue: len(overdue) > most, moreNext: len(next) > most}
		d.overdue, d.next = int64(min(len(overdue), most)), int64(min(len(next), most))
		if len(overdue) > 0 {
			d.oldest = overdue[0]
		}
		r.due[tags[at].Tag] = d
	}
	return nil
}

// readLeases reads leases that are over, and those that silent processes hold. A process that is silent claims nothing
// more, so one without leases is asked about once.
func (r *reading) readLeases(ctx context.Context) error {
	executing, err := r.from.Oldest(ctx, row.Executing)
	if err != nil {
		return err
	}
	var tags, over []string
	for _, c := range executing {
		if tags = append(tags, c.Tag); c.Oldest < r.now {
			over = append(over, c.Tag)
		}
	}
	if r.leases.over, _, err = r.from.Expired(ctx, over, mostExpired); err != nil {
		return err
	}
	r.leases.silent = map[string][]row.State{}
	without := map[string]row.Time{}
	silent := slices.DeleteFunc(slices.Clone(r.nodes), func(n row.Node) bool {
		if at, known := r.without[n.Token]; known && at == n.Heartbeat {
			without[n.Token] = at
			return true
		}
		return isAlive(n, r.now)
	})
	slices.SortFunc(silent, func(a, b row.Node) int { return cmp.Compare(b.Heartbeat, a.Heartbeat) })
	silent = silent[:min(len(silent), mostSilent)]
	var processes []int64
	for _, n := range silent {
		if p, ok := row.ProcessOf(n.Token); ok {
			processes = append(processes, p)
		}
	}
	r.without = without
	if len(silent) == 0 {
		return nil
	}
	held, err := r.from.Orphans(ctx, tags, processes, mostLeases)
	if err != nil {
		return err
	}
	r.leases.more = len(held) == mostLeases
	for _, n := range silent {
		of := slices.DeleteFunc(slices.Clone(held), func(s row.State) bool {
			return s.Executor.Token() != n.Token
		})
		if r.leases.silent[n.Token] = of; len(of) == 0 && !r.leases.more {
			without[n.Token] = n.Heartbeat
		}
	}
	return nil
}

// readForecast reads the next hour. Its first step has begun.
func (r *reading) readForecast(ctx context.Context) error {
	return r.cache.forecast.refresh(r.now, r.now.Add(keepForecast), func() (*report.Forecast, error) {
		found, err := forecast.Read(ctx, r.from, forecast.Query{
			Now: r.now, Span: report.ForecastHour, Step: time.Minute,
		})
		return &found, err
	})
}

// readReplica reads what the server says of itself. An account that may not ask is not told.
func (r *reading) readReplica(ctx context.Context) {
	if r.of.Replica == nil {
		return
	}
	_ = r.cache.replica.refresh(r.now, r.now.Add(keepLocks), func() (Replica, error) {
		return call(ctx, r.from, r.of.Replica)
	})
}

func (r *reading) readLocks(ctx context.Context) error {
	if r.of.Locks == nil {
		return nil
	}
	return r.cache.locks.refresh(r.now, r.now.Add(keepLocks), func() (found []Lock, err error) {
		err = r.from.call(ctx, func(ctx context.Context) (err error) {
			found, err = r.of.Locks(ctx)
			return err
		})
		return found, err
	})
}

func (r *reading) readSchedules(ctx context.Context) error {
	return r.cache.standing.refresh(r.now, r.now.Add(keepStanding), func() ([]standing.Finding, error) {
		return standing.Read(ctx, r.from, r.now)
	})
}

// readFailures reads what has failed lately, and the errors of what is tried again and again.
func (r *reading) readFailures(ctx context.Context) error {
	r.failed, r.retried = map[string]*failures{}, map[string]*failures{}
	tags, err := r.tagsWith(row.Failed, func(listing.TagCount) bool { return true })
	if err != nil {
		return err
	}
	from := r.now.Add(-failureSpan)
	if len(tags) > mostTags { // then those whose tasks have failed last
		tags, err = r.from.FirstDue(ctx, row.Span{Status: row.Failed, From: from, Down: true})
		if err != nil {
			return err
		}
		slices.SortFunc(tags, func(a, b row.TagCount) int {
			return cmp.Or(cmp.Compare(b.Oldest, a.Oldest), cmp.Compare(a.Tag, b.Tag))
		})
		tags = tags[:min(len(tags), mostTags)]
	}
	var spans []row.Span
	for _, c := range tags {
		spans = append(spans, row.Span{Status: row.Failed, Tag: c.Tag, Padded: true, From: from, Down: true})
	}
	retrying := r.retrying()
	retrying = retrying[:min(len(retrying), mostTags)]
	for _, tag := range retrying {
		spans = append(spans, row.Span{Status: row.Pending, Tag: tag, Padded: true, From: r.now})
	}
	most := perTag(mostPlaces, leastPlaces, mostCounted, len(spans))
	places, err := r.from.Places(ctx, spans, most+1)
	if err != nil {
		return err
	}
	for i, span := range spans {
		of := places[i]
		if len(of) == 0 {
			continue
		}
		f := &failures{tasks: int64(min(len(of), most)), more: len(of) > most, first: of[len(of)-1].Due}
		if span.Status == row.Failed {
			r.failed[span.Tag] = f
		} else {
			r.retried[span.Tag] = f
		}
	}
	return r.readErrors(ctx, spans, places)
}

// retrying returns the tags with more failed attempts than completed tasks.
func (r *reading) retrying() (tags []string) {
	h := r.cache.history.found
	if h == nil {
		return nil
	}
	for tag, of := range h.tags {
		if of.retries() {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// readErrors reads some errors of each tag, and keeps the largest group.
func (r *reading) readErrors(ctx context.Context, spans []row.Span, places [][]row.Place) error {
	var ids []int64
	of := map[int64]*failures{}
	some := perTag(mostFailures, leastPlaces, mostCounted, len(r.failed)+len(r.retried))
	for i, span := range spans {
		f := r.retried[span.Tag]
		if span.Status == row.Failed {
			f = r.failed[span.Tag]
		}
		for _, place := range places[i][:min(len(places[i]), some)] {
			ids, of[place.ID] = append(ids, place.ID), f
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	found, err := r.from.Failures(ctx, ids)
	if err != nil {
		return err
	}
	byTag := map[*failures][]row.Failure{}
	for _, failure := range found {
		if failure.Error != "" { // a task that waits for its first attempt has none
			byTag[of[failure.ID]] = append(byTag[of[failure.ID]], failure)
		}
	}
	for f, all := range byTag {
		f.group = &listing.GroupOf(all)[0]
	}
	return nil
}
