package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

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
var codes = []processor.FindingCode{
	processor.FindingClockHeld, processor.FindingUnserved, processor.FindingLeaseOver, processor.FindingRowsLocked,
	processor.FindingOverdue, processor.FindingHanging, processor.FindingFailing, processor.FindingRetrying,
	processor.FindingNodeSilent, processor.FindingPausedOverdue, processor.FindingClockWide,
	processor.FindingPurgeBehind,
}

// attention returns what needs attention. Within a code the largest number comes first.
func (v *view) attention() []processor.Finding {
	found := slices.Concat(v.clockFindings(), v.dueFindings(), v.leaseFindings(), v.silentFindings(),
		v.failureFindings(), v.purgeFindings())
	if v.seesAll() {
		found = slices.Concat(found, v.lockFindings(), v.hangingFindings())
	}
	slices.SortStableFunc(found, func(a, b processor.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(codes, a.Code), slices.Index(codes, b.Code)),
			cmp.Compare(b.Number, a.Number), cmp.Compare(a.Tag, b.Tag))
	})
	return found
}

func (v *view) clockFindings() []processor.Finding {
	switch {
	case v.clock.Held:
		return []processor.Finding{{
			Code: processor.FindingClockHeld,
			Text: "this process starts no task: it does not know the database's clock, as after a failover",
			Do:   "wait some seconds; then look whether the database answers: delaytask doctor",
		}}
	case v.clock.Width > clockWide:
		return []processor.Finding{{
			Code: processor.FindingClockWide,
			Text: fmt.Sprintf("this process knows the database's clock to within %v only, and tasks may be as late",
				v.clock.Width.Round(time.Millisecond)),
			Do: "look for what slows the answers of the database: delaytask doctor",
		}}
	}
	return nil
}

// dueFindings tells of overdue tasks, each tag once, by what keeps them.
func (v *view) dueFindings() (found []processor.Finding) {
	for tag, due := range v.due {
		t := v.tags[tag]
		if t == nil || due.overdue == 0 || v.now.Sub(due.oldest.Due) < lateAfter {
			continue
		}
		f := processor.Finding{
			Tag: tag, Number: due.overdue, AtLeast: due.moreOverdue, Since: t.OldestDue, Task: due.oldest.ID,
		}
		f.Do = fmt.Sprintf("delaytask explain %d", f.Task)
		switch {
		case t.Paused:
			f.Code, f.Text = processor.FindingPausedOverdue, "the tag is paused, and "+isOverdue(&f)
			f.Do = onTag("delaytask resume", tag)
		case len(t.Nodes) == 0 && !v.popped(tag):
			f.Code, f.Text = processor.FindingUnserved, isOverdue(&f)+", and no live process serves the tag"
			f.Do = "start the process that serves the tag, whose letters' case counts: delaytask nodes"
		default:
			f.Code = processor.FindingOverdue
			f.Text = fmt.Sprintf("%s although %s: they have too few slots, the processor is slow, or rows are locked",
				isOverdue(&f), v.serves(t))
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

func (v *view) serves(t *processor.TagOverview) string {
	serve := "callers of Pop take them"
	switch n := len(t.Nodes); {
	case n == 1:
		serve = "1 process serves the tag"
	case n > 1:
		serve = fmt.Sprintf("%d processes serve the tag", n)
	}
	if executing := countOf(t, processor.Executing); v.missing[processor.PartCounts] == nil {
		serve += fmt.Sprintf(", with %s executing", number(executing.Tasks, executing.Precision != processor.Exact))
	}
	return serve
}

// onTag returns the command on a tag. A tag that was written by hand may be anything, and is in no command.
func onTag(command, tag string) string {
	if !processor.ValidTag(tag) {
		return "mend the tag of these rows, which is not valid: delaytask list"
	}
	return command + " " + tag
}

func isOverdue(f *processor.Finding) string {
	return aTask(f.Number, f.AtLeast, "is overdue", "are overdue")
}

// aTask is a sentence about tasks.
func aTask(n int64, atLeast bool, is, are string) string {
	if n == 1 && !atLeast {
		return "1 task " + is
	}
	return number(n, atLeast) + " tasks " + are
}

func number(n int64, atLeast bool) string {
	if atLeast {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

func (v *view) leaseFindings() (found []processor.Finding) {
	byTag := map[string]*processor.Finding{}
	for i := range v.leases.over {
		r := &v.leases.over[i]
		if v.now.Sub(r.Due) < leaseOver || !v.sees(r.Tag) {
			continue
		}
		if byTag[r.Tag] == nil { // the oldest lease comes first
			byTag[r.Tag] = &processor.Finding{
				Code: processor.FindingLeaseOver, Tag: r.Tag, Since: r.Due.Std(), Task: r.ID,
				AtLeast: len(v.leases.over) == mostExpired, Do: fmt.Sprintf("delaytask explain %d", r.ID),
			}
		}
		byTag[r.Tag].Number++
	}
	for _, f := range byTag {
		f.Text = aTask(f.Number, f.AtLeast, "is executing with a lease that is over",
			"are executing with leases that are over") +
			": no process rescues them, or another transaction locks the rows"
		found = append(found, *f)
	}
	return found
}

// silentFindings tells of processes that have ended without a word, for as long as they hold leases or for a while.
func (v *view) silentFindings() (found []processor.Finding) {
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
		f := processor.Finding{
			Code: processor.FindingNodeSilent, Node: nodeRef(n), Number: held, AtLeast: len(all) >= mostLeases,
			Since: n.Heartbeat.Std(), Do: "look whether it runs and reaches the database: delaytask nodes",
		}
		f.Text = fmt.Sprintf("process %d (%s) is silent", n.Number, n.Name)
		if held > 0 {
			f.Text += fmt.Sprintf(", and %s, the last one until %s", aTask(held, f.AtLeast, "is leased to it",
				"are leased to it"), moment(until))
		}
		found = append(found, f)
	}
	return found
}

func (v *view) failureFindings() (found []processor.Finding) {
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
		f := processor.Finding{
			Code: processor.FindingFailing, Tag: tag, Number: of.tasks, Since: of.first.Std(), AtLeast: of.more,
			Do: onTag("delaytask failures --tag", tag),
		}
		if n := lately(tag).Failed; of.more && n > f.Number {
			f.Number, f.AtLeast = n, false
		}
		f.Text = aTask(f.Number, f.AtLeast, "has failed", "have failed") + " within 10 min" + v.addError(&f, of)
		found = append(found, f)
	}
	if v.failed == nil || v.history.found == nil {
		return found
	}
	for tag, of := range v.history.found.tags {
		if !of.retries() || !v.sees(tag) {
			continue
		}
		f := processor.Finding{
			Code: processor.FindingRetrying, Tag: tag, Number: of.lately.Retried,
			Do: onTag("delaytask list --status pending --tag", tag),
		}
		f.Text = fmt.Sprintf("%d attempts have failed within 10 min and are tried again, and %d tasks were completed%s",
			f.Number, of.lately.Completed, v.addError(&f, v.retried[tag]))
		found = append(found, f)
	}
	return found
}

// addError names the most frequent error, and returns the end of the sentence.
func (v *view) addError(f *processor.Finding, of *failures) string {
	if of == nil || of.group == nil || v.filter.Errors != nil && !v.filter.Errors(f.Tag) {
		return ""
	}
	f.Error, f.Task = of.group.Error, of.group.Example.ID
	if f.Code == processor.FindingFailing {
		f.Group = of.group.ID
	}
	return ", most often: " + row.Clip(f.Error, 200)
}

// purgeFindings tells of ended tasks that should be deleted by now.
func (v *view) purgeFindings() (found []processor.Finding) {
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
		f := processor.Finding{
			Code: processor.FindingPurgeBehind, Since: oldest.Add(retention).Std(), Number: int64(len(behind)),
			Do: "start a process where none is alive; each deletes by its own retention: delaytask nodes",
		}
		if len(behind) == 1 {
			f.Tag = behind[0]
		}
		f.Text = fmt.Sprintf("%s tasks are past their retention of %v: of %s", status, retention, few(behind))
		found = append(found, f)
	}
	return found
}

func few(names []string) string {
	slices.Sort(names)
	if len(names) > fewTags {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:fewTags], ", "), len(names)-fewTags)
	}
	return strings.Join(names, ", ")
}

// lockFindings tells of transactions that lock tasks. Where the server does not tell what is locked, one is a finding
// only while tasks are overdue.
func (v *view) lockFindings() (found []processor.Finding) {
	isLate := slices.ContainsFunc(v.dueFindings(), func(f processor.Finding) bool {
		return f.Code == processor.FindingOverdue
	})
	for _, l := range v.locks.found {
		if l.Age < lockHeld || !l.Tasks && !isLate {
			continue
		}
		what := "rows of tasks"
		if !l.Tasks {
			what = "rows, which may be tasks"
		}
		found = append(found, processor.Finding{
			Code: processor.FindingRowsLocked, Number: l.Rows, Since: v.now.Add(-l.Age).Std(),
			Text: fmt.Sprintf("connection %s has a transaction open that locks %d %s", l.Thread, l.Rows, what),
			Do:   "find out what it waits for, or end it on the server: KILL " + l.Thread,
		})
	}
	return found
}

func (v *view) hangingFindings() (found []processor.Finding) {
	for _, h := range v.hanging {
		found = append(found, processor.Finding{
			Code: processor.FindingHanging, Tag: h.Tag, Number: 1, Since: h.Since.Std(), Task: h.ID, Stack: h.Stack,
			Text: fmt.Sprintf("the processor of task %d, in attempt %d, ignores that its context has ended", h.ID,
				h.Attempt),
			Do: "mend the processor where the stack shows it, or start this process again",
		})
	}
	return found
}

// moment renders a time as the delaytask command reads it.
func moment(t row.Time) string { return t.Std().UTC().Format("2006-01-02T15:04:05.000Z") }
