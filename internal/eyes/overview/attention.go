package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/standing"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

const (
	lateAfter  = 5 * time.Second        // a served task is started within seconds, whatever has gone wrong
	leaseOver  = 30 * time.Second       // a rescue ends a lease within 5 s
	lockHeld   = 30 * time.Second       // a transaction that changes tasks takes milliseconds
	silentFor  = 10 * time.Minute       // how long a process that ended without a word is told of, if it holds nothing
	purgeAfter = 10 * time.Minute       // a purge deletes 20,000 rows in 5 s
	clockWide  = 100 * time.Millisecond // that a start may be late without another reason
)

// codes is the order of findings, the most urgent first.
var codes = []report.FindingCode{
	report.FindingTwoDatabases, report.FindingReplica, report.FindingClockHeld, report.FindingUnserved,
	report.FindingLeaseOver,
	report.FindingRowsLocked, report.FindingOverdue, report.FindingHanging, report.FindingFailing,
	report.FindingRetrying, report.FindingNodeSilent, report.FindingScheduleBehind, report.FindingSchedulePaused,
	report.FindingScheduleUnsuccessful, report.FindingPausedOverdue, report.FindingClockWide,
	report.FindingPurgeBehind,
}

// attention returns what needs attention. Within a code the largest number comes first.
func (v *view) attention() []report.Finding {
	found := slices.Concat(v.clockFindings(), v.dueFindings(), v.leaseFindings(), v.silentFindings(),
		v.failureFindings(), v.purgeFindings(), v.scheduleFindings())
	if v.seesAll() {
		found = slices.Concat(found, v.apartFindings(), v.replicaFindings(), v.lockFindings(), v.hangingFindings())
	}
	for i := range found {
		text, do := Words(&found[i])
		found[i].Text, found[i].Do = text.English(), do.English()
	}
	slices.SortStableFunc(found, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(codes, a.Code), slices.Index(codes, b.Code)),
			cmp.Compare(b.Number, a.Number), cmp.Compare(a.Tag, b.Tag))
	})
	return found
}

func (v *view) apartFindings() []report.Finding {
	if v.apart == nil {
		return nil
	}
	return []report.Finding{{Code: report.FindingTwoDatabases, Evidence: report.Evidence{Servers: v.apart}}}
}

func (v *view) replicaFindings() []report.Finding {
	switch is := v.replica.found; {
	case is.Source != "":
		return []report.Finding{{Code: report.FindingReplica, Evidence: report.Evidence{Servers: []string{is.Source}}}}
	case is.ReadOnly:
		return []report.Finding{{Code: report.FindingReplica}}
	default:
		return nil
	}
}

func (v *view) clockFindings() []report.Finding {
	switch {
	case v.clock.Held:
		return []report.Finding{{Code: report.FindingClockHeld}}
	case v.clock.Width > clockWide:
		return []report.Finding{{
			Code: report.FindingClockWide, Evidence: report.Evidence{ClockWidth: v.clock.Width},
		}}
	}
	return nil
}

// dueFindings tells of overdue tasks, each tag once, by what keeps them.
func (v *view) dueFindings() (found []report.Finding) {
	for tag, due := range v.due {
		t := v.tags[tag]
		if t == nil || due.overdue == 0 || v.now.Sub(due.oldest.Due) < lateAfter {
			continue
		}
		f := report.Finding{
			Tag: tag, Number: due.overdue, AtLeast: due.moreOverdue, Since: t.OldestDue, Task: due.oldest.ID,
		}
		switch {
		case t.Paused:
			f.Code = report.FindingPausedOverdue
		case len(t.Nodes) == 0 && !v.popped(tag):
			f.Code = report.FindingUnserved
		default:
			f.Code, f.Evidence.Nodes = report.FindingOverdue, len(t.Nodes)
			if v.missing[report.PartCounts] == nil {
				executing := countOf(t, delaytask.Executing)
				f.Evidence.Executing = &executing
			}
		}
		found = append(found, f)
	}
	return found
}

// popped reports whether callers of Pop take the tasks of the tag from a live process.
func (v *view) popped(tag string) bool {
	return slices.ContainsFunc(v.nodes, func(n row.Node) bool {
		return !n.Leaving && isAlive(n, v.now) &&
			(slices.Contains(n.Wake.Pops, tag) || slices.Contains(n.Wake.Pops, row.AllTags))
	})
}

func (v *view) leaseFindings() (found []report.Finding) {
	byTag := map[string]*report.Finding{}
	for i := range v.leases.over {
		r := &v.leases.over[i]
		if v.now.Sub(r.Due) < leaseOver || !v.sees(r.Tag) {
			continue
		}
		if byTag[r.Tag] == nil { // the oldest lease comes first
			byTag[r.Tag] = &report.Finding{
				Code: report.FindingLeaseOver, Tag: r.Tag, Since: r.Due.Std(), Task: r.ID,
				AtLeast: len(v.leases.over) == mostExpired,
			}
		}
		byTag[r.Tag].Number++
	}
	for _, f := range byTag {
		found = append(found, *f)
	}
	return found
}

// silentFindings tells of processes that have ended without a word, for as long as they hold leases or for a while.
func (v *view) silentFindings() (found []report.Finding) {
	for _, n := range v.nodes {
		if isAlive(n, v.now) {
			continue
		}
		var held int64
		var until row.Time
		all := v.leases.silent[n.Token]
		for _, s := range all {
			if v.sees(s.Tag) {
				held, until = held+1, max(until, s.Due)
			}
		}
		if held == 0 && (len(n.Tags) == 0 || n.Leaving || v.now.Sub(n.Heartbeat) > silentFor) {
			continue
		}
		f := report.Finding{
			Code: report.FindingNodeSilent, Node: nodeRef(n), Number: held, AtLeast: v.leases.more,
			Since: n.Heartbeat.Std(),
		}
		if held > 0 {
			f.Evidence.LeasedUntil = until.Std()
		}
		found = append(found, f)
	}
	return found
}

func (v *view) failureFindings() (found []report.Finding) {
	lately := func(tag string) (of row.Rollup) {
		if h := v.history.found; h != nil && h.tags[tag] != nil {
			of = h.tags[tag].lately
		}
		return of
	}
	for tag, of := range v.failed {
		if !v.sees(tag) {
			continue
		}
		f := report.Finding{
			Code: report.FindingFailing, Tag: tag, Number: of.tasks, Since: of.first.Std(), AtLeast: of.more,
		}
		if n := lately(tag).Failed; of.more && n > f.Number { // except for the last minute, so it stays a lower bound
			f.Number = n
		}
		v.addError(&f, of)
		found = append(found, f)
	}
	if v.failed == nil || v.history.found == nil {
		return found
	}
	for tag, of := range v.history.found.tags {
		if !of.retries() || !v.sees(tag) {
			continue
		}
		f := report.Finding{
			Code: report.FindingRetrying, Tag: tag, Number: of.lately.Retried,
			Evidence: report.Evidence{Completed: of.lately.Completed},
		}
		v.addError(&f, v.retried[tag])
		found = append(found, f)
	}
	return found
}

// addError names the most frequent error.
func (v *view) addError(f *report.Finding, of *failures) {
	if of == nil || of.group == nil || v.filter.Errors != nil && !v.filter.Errors(f.Tag) {
		return
	}
	f.Error, f.Task = listing.Masked(of.group.Example, redact.Text), of.group.Example.ID
	if f.Code == report.FindingFailing {
		f.Group = of.group.ID
	}
}

// purgeFindings tells of ended tasks that should be deleted by now.
func (v *view) purgeFindings() (found []report.Finding) {
	for _, status := range []row.Status{row.Completed, row.Failed, row.Cancelled} {
		retention := v.retention[status]
		if retention <= 0 {
			continue
		}
		var behind []string
		oldest := v.now
		for _, c := range slices.Concat(v.counts, v.ended.found) {
			over := !c.Oldest.IsZero() && v.now.Sub(c.Oldest) >= retention+purgeAfter
			if c.Status != status || !over || !v.sees(c.Tag) {
				continue
			}
			behind, oldest = append(behind, c.Tag), min(oldest, c.Oldest)
		}
		if len(behind) == 0 {
			continue
		}
		slices.Sort(behind)
		f := report.Finding{
			Code: report.FindingPurgeBehind, Since: oldest.Add(retention).Std(), Number: int64(len(behind)),
			Evidence: report.Evidence{Status: status.Text(), Retention: retention, Tags: behind},
		}
		if len(behind) == 1 {
			f.Tag = behind[0]
		}
		found = append(found, f)
	}
	return found
}

// scheduleFindings are about schedules that need an operator. Their reasons hold errors.
func (v *view) scheduleFindings() (found []report.Finding) {
	codes := map[standing.Trouble]report.FindingCode{
		standing.Behind: report.FindingScheduleBehind, standing.Paused: report.FindingSchedulePaused,
		standing.Unsuccessful: report.FindingScheduleUnsuccessful,
	}
	for _, of := range v.standing.found {
		if !v.sees(of.Tag) {
			continue
		}
		f := report.Finding{
			Code: codes[of.Trouble], Tag: of.Tag, Number: int64(len(of.Names)), Since: of.Since.Std(),
			Evidence: report.Evidence{Schedules: slices.Clone(of.Names)},
		}
		if v.filter.Errors == nil || v.filter.Errors(of.Tag) {
			f.Error = redact.Text(of.Tag, of.Reason)
		}
		found = append(found, f)
	}
	return found
}

// lockFindings tells of transactions that lock tasks. Where the server does not tell what is locked, one is a finding
// only while tasks are overdue, or writes of a tag wait here. Those waits are a finding where it tells of none.
func (v *view) lockFindings() (found []report.Finding) {
	isLate := slices.ContainsFunc(v.dueFindings(), func(f report.Finding) bool {
		return f.Code == report.FindingOverdue
	})
	for _, l := range v.locks.found {
		if l.Age < lockHeld || !l.Tasks && !isLate && len(v.lockedTags) == 0 {
			continue
		}
		found = append(found, report.Finding{
			Code: report.FindingRowsLocked, Number: l.Rows, Since: v.now.Add(-l.Age).Std(),
			Evidence: report.Evidence{Thread: l.Thread, MayLock: !l.Tasks, Tags: v.lockedTags},
		})
	}
	if len(found) == 0 && len(v.lockedTags) > 0 {
		found = append(found, report.Finding{
			Code: report.FindingRowsLocked, Since: v.now.Std(), Evidence: report.Evidence{Tags: v.lockedTags},
		})
	}
	return found
}

func (v *view) hangingFindings() (found []report.Finding) {
	for _, h := range v.hanging {
		found = append(found, report.Finding{
			Code: report.FindingHanging, Tag: h.Tag, Number: 1, Since: h.Since.Std(), Task: h.ID, Stack: h.Stack,
			Evidence: report.Evidence{Attempt: h.Attempt},
		})
	}
	return found
}
