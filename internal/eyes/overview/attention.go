package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// MostError is how much of an error a sentence has, in bytes.
const MostError = 200

// Advice is the Text and the Do of a finding, for those who write them in another language.
type Advice struct{ Text, Do sentence.Sentence }

// finding is a finding whose Text and Do are not written yet.
type finding struct {
	report.Finding
	Advice
}

// written splits findings. Their texts are in English.
func written(found []finding) (all []report.Finding, advice []Advice) {
	for _, f := range found {
		f.Finding.Text, f.Finding.Do = f.Advice.Text.English(), f.Advice.Do.English()
		all, advice = append(all, f.Finding), append(advice, f.Advice)
	}
	return all, advice
}

const (
	lateAfter  = 5 * time.Second        // a served task is started within seconds, whatever has gone wrong
	leaseOver  = 30 * time.Second       // a rescue ends a lease within 5 s
	lockHeld   = 30 * time.Second       // a transaction that changes tasks takes milliseconds
	silentFor  = 10 * time.Minute       // how long a process that ended without a word is told of, if it holds nothing
	purgeAfter = 10 * time.Minute       // a purge deletes 20,000 rows in 5 s
	clockWide  = 100 * time.Millisecond // that a start may be late without another reason
	fewTags    = 5                      // that a sentence names
)

// codes is the order of findings, the most urgent first.
var codes = []report.FindingCode{
	report.FindingClockHeld, report.FindingUnserved, report.FindingLeaseOver, report.FindingRowsLocked,
	report.FindingOverdue, report.FindingHanging, report.FindingFailing, report.FindingRetrying,
	report.FindingNodeSilent, report.FindingPausedOverdue, report.FindingClockWide,
	report.FindingPurgeBehind,
}

// attention returns what needs attention. Within a code the largest number comes first.
func (v *view) attention() []finding {
	found := slices.Concat(v.clockFindings(), v.dueFindings(), v.leaseFindings(), v.silentFindings(),
		v.failureFindings(), v.purgeFindings())
	if v.seesAll() {
		found = slices.Concat(found, v.lockFindings(), v.hangingFindings())
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(slices.Index(codes, a.Code), slices.Index(codes, b.Code)),
			cmp.Compare(b.Number, a.Number), cmp.Compare(a.Tag, b.Tag))
	})
	return found
}

func (v *view) clockFindings() []finding {
	switch {
	case v.clock.Held:
		return []finding{{
			report.Finding{Code: report.FindingClockHeld},
			Advice{sentence.Of(sentence.ClockHeld), sentence.Of(sentence.DoClockHeld)},
		}}
	case v.clock.Width > clockWide:
		return []finding{{
			report.Finding{Code: report.FindingClockWide},
			Advice{
				sentence.Of(sentence.ClockWide, v.clock.Width.Round(time.Millisecond)),
				sentence.Of(sentence.DoClockWide),
			},
		}}
	}
	return nil
}

// dueFindings tells of overdue tasks, each tag once, by what keeps them.
func (v *view) dueFindings() (found []finding) {
	for tag, due := range v.due {
		t := v.tags[tag]
		if t == nil || due.overdue == 0 || v.now.Sub(due.oldest.Due) < lateAfter {
			continue
		}
		f := finding{Finding: report.Finding{
			Tag: tag, Number: due.overdue, AtLeast: due.moreOverdue, Since: t.OldestDue, Task: due.oldest.ID,
		}}
		f.Advice.Do = explain(f.Task)
		switch {
		case t.Paused:
			f.Code, f.Advice.Text = report.FindingPausedOverdue, sentence.Of(sentence.PausedOverdue, countIn(&f))
			f.Advice.Do = onTag("delaytask resume", tag)
		case len(t.Nodes) == 0 && !v.popped(tag):
			f.Code, f.Advice.Text = report.FindingUnserved, sentence.Of(sentence.Unserved, countIn(&f))
			f.Advice.Do = sentence.Of(sentence.DoUnserved)
		default:
			f.Code, f.Advice.Text = report.FindingOverdue, sentence.Of(sentence.Overdue, countIn(&f), v.serves(t))
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

func (v *view) serves(t *report.TagOverview) sentence.Sentence {
	serve := sentence.Of(sentence.ServedByPops)
	if n := len(t.Nodes); n > 0 {
		serve = sentence.Of(sentence.ServedBy, n)
	}
	if executing := countOf(t, delaytask.Executing); v.missing[report.PartCounts] == nil {
		serve = sentence.Of(sentence.ServedExecuting, serve,
			sentence.Count{N: executing.Tasks, AtLeast: executing.Precision != report.Exact})
	}
	return serve
}

// onTag returns the command on a tag. A tag that was written by hand may be anything, and is in no command.
func onTag(command, tag string) sentence.Sentence {
	if !delaytask.ValidTag(tag) {
		return sentence.Of(sentence.DoTagInvalid)
	}
	return sentence.Of(sentence.DoCommand, command+" "+tag)
}

func explain(task int64) sentence.Sentence {
	return sentence.Of(sentence.DoCommand, fmt.Sprintf("delaytask explain %d", task))
}

// countIn is the number of a finding, as its sentence has it.
func countIn(f *finding) sentence.Count { return sentence.Count{N: f.Number, AtLeast: f.AtLeast} }

func (v *view) leaseFindings() (found []finding) {
	byTag := map[string]*finding{}
	for i := range v.leases.over {
		r := &v.leases.over[i]
		if v.now.Sub(r.Due) < leaseOver || !v.sees(r.Tag) {
			continue
		}
		if byTag[r.Tag] == nil { // the oldest lease comes first
			byTag[r.Tag] = &finding{
				Finding: report.Finding{
					Code: report.FindingLeaseOver, Tag: r.Tag, Since: r.Due.Std(), Task: r.ID,
					AtLeast: len(v.leases.over) == mostExpired,
				},
				Advice: Advice{Do: explain(r.ID)},
			}
		}
		byTag[r.Tag].Number++
	}
	for _, f := range byTag {
		f.Advice.Text = sentence.Of(sentence.LeaseOver, countIn(f))
		found = append(found, *f)
	}
	return found
}

// silentFindings tells of processes that have ended without a word, for as long as they hold leases or for a while.
func (v *view) silentFindings() (found []finding) {
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
		f := finding{Finding: report.Finding{
			Code: report.FindingNodeSilent, Node: nodeRef(n), Number: held, AtLeast: len(all) >= mostLeases,
			Since: n.Heartbeat.Std(),
		}}
		f.Advice = Advice{sentence.Of(sentence.NodeSilent, n.Number, n.Name), sentence.Of(sentence.DoNodeSilent)}
		if held > 0 {
			f.Advice.Text = sentence.Of(sentence.NodeSilentHolds, n.Number, n.Name,
				sentence.Of(sentence.LeasedToIt, countIn(&f)), until.Std())
		}
		found = append(found, f)
	}
	return found
}

func (v *view) failureFindings() (found []finding) {
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
		f := finding{Finding: report.Finding{
			Code: report.FindingFailing, Tag: tag, Number: of.tasks, Since: of.first.Std(), AtLeast: of.more,
		}}
		if n := lately(tag).Failed; of.more && n > f.Number { // except for the last minute, so it stays a lower bound
			f.Number = n
		}
		f.Advice = Advice{
			sentence.Of(sentence.Failing, countIn(&f)), onTag("delaytask failures --tag", tag),
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
		f := finding{
			report.Finding{Code: report.FindingRetrying, Tag: tag, Number: of.lately.Retried},
			Advice{
				sentence.Of(sentence.Retrying, of.lately.Retried, of.lately.Completed),
				onTag("delaytask list --status pending --tag", tag),
			},
		}
		v.addError(&f, v.retried[tag])
		found = append(found, f)
	}
	return found
}

// addError names the most frequent error.
func (v *view) addError(f *finding, of *failures) {
	if of == nil || of.group == nil || v.filter.Errors != nil && !v.filter.Errors(f.Tag) {
		return
	}
	f.Error, f.Task = listing.Masked(of.group.Example, redact.Text), of.group.Example.ID
	if f.Code == report.FindingFailing {
		f.Group = of.group.ID
	}
	f.Advice.Text = sentence.Of(sentence.MostOften, f.Advice.Text, sentence.Quote(row.Shorten(f.Error, MostError)))
}

// purgeFindings tells of ended tasks that should be deleted by now.
func (v *view) purgeFindings() (found []finding) {
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
		f := finding{Finding: report.Finding{
			Code: report.FindingPurgeBehind, Since: oldest.Add(retention).Std(), Number: int64(len(behind)),
		}}
		if len(behind) == 1 {
			f.Tag = behind[0]
		}
		f.Advice = Advice{
			sentence.Of(sentence.PurgeBehind, sentence.Of(sentence.Status+sentence.Code(status.String())), retention,
				few(behind)),
			sentence.Of(sentence.DoPurgeBehind),
		}
		found = append(found, f)
	}
	return found
}

// few returns names as a parameter of a sentence.
func few(names []string) any {
	slices.Sort(names)
	if len(names) > fewTags {
		return sentence.Of(sentence.FewOfMore, strings.Join(names[:fewTags], ", "), len(names)-fewTags)
	}
	return strings.Join(names, ", ")
}

// lockFindings tells of transactions that lock tasks. Where the server does not tell what is locked, one is a finding
// only while tasks are overdue.
func (v *view) lockFindings() (found []finding) {
	isLate := slices.ContainsFunc(v.dueFindings(), func(f finding) bool { return f.Code == report.FindingOverdue })
	for _, l := range v.locks.found {
		if l.Age < lockHeld || !l.Tasks && !isLate {
			continue
		}
		code := sentence.RowsLocked
		if !l.Tasks {
			code = sentence.RowsMayBeLocked
		}
		found = append(found, finding{
			report.Finding{Code: report.FindingRowsLocked, Number: l.Rows, Since: v.now.Add(-l.Age).Std()},
			Advice{sentence.Of(code, l.Thread, l.Rows), sentence.Of(sentence.DoRowsLocked, l.Thread)},
		})
	}
	return found
}

func (v *view) hangingFindings() (found []finding) {
	for _, h := range v.hanging {
		found = append(found, finding{
			report.Finding{
				Code: report.FindingHanging, Tag: h.Tag, Number: 1, Since: h.Since.Std(), Task: h.ID, Stack: h.Stack,
			},
			Advice{sentence.Of(sentence.Hanging, sentence.ID(h.ID), h.Attempt), sentence.Of(sentence.DoHanging)},
		})
	}
	return found
}
