package dashboard

import (
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

// tasksPage is a list of tasks.
type tasksPage struct {
	Filter   delaytask.Filter
	Query    url.Values
	Known    []string // tags, without a read of tasks
	Tasks    []delaytask.TaskRow
	Next     string // the query of the next page
	Stopped  bool
	First    bool // no page is before it; only this one refreshes
	NeedsTag bool // nothing was read: the user sees some tags only
	Count    int64
	Counted  bool // Count is known
	Capped   bool // and there are more
	Command  string
	Change   bool // some of the tasks can be changed by the user
	Done     int  // that the action before has changed
	Left     int  // that it has not
	Untried  int  // that an error has kept it from; of the first it is not known what became
}

// Narrowed reports whether the list has more filters than a status and a tag.
func (p tasksPage) Narrowed() bool {
	f := p.Filter
	f.After, f.Tag, f.Status = "", "", ""
	return f != delaytask.Filter{}
}

// Moment is the key of what the due time of these tasks means.
func (p tasksPage) Moment() string {
	switch {
	case p.Filter.Status.Final():
		return "task.due.failed"
	case p.Filter.Status == delaytask.Executing:
		return "task.due.executing"
	default:
		return "field.due"
	}
}

// Statuses lists the statuses in the order of a task's life.
func (*view) Statuses() []delaytask.Status {
	return []delaytask.Status{delaytask.Pending, delaytask.Executing, delaytask.Completed, delaytask.Failed,
		delaytask.Cancelled}
}

const (
	tasksOfPage = 50
	mostCounted = 10_000 // of a tag and status
)

// tasks shows a list.
func (v *view) tasks() (any, error) {
	query := v.r.URL.Query()
	f, clean, err := v.filterOf(query)
	if err != nil {
		return nil, err
	}
	if err := v.canonically(clean); err != nil {
		return nil, err
	}
	shown := tasksPage{Filter: f, Query: clean, First: f.After == "", Command: listCommand("list", f)}
	shown.Done, _ = strconv.Atoi(v.did.Get("done"))
	shown.Left, _ = strconv.Atoi(v.did.Get("left"))
	shown.Untried, _ = strconv.Atoi(v.did.Get("untried"))
	if !isPart(v.r) { // the field for a tag is not refreshed
		shown.Known = v.knownTags()
	}
	if f.Tag == "" && !v.allTags(access.Read) {
		shown.NeedsTag = true
		return shown, nil
	}
	f.Limit = tasksOfPage
	page, err := v.look().List(v.r.Context(), f)
	if err != nil {
		return nil, err
	}
	shown.Stopped = page.Stopped
	if page.Next != "" {
		next := maps.Clone(clean)
		next.Set("cursor", page.Next)
		shown.Next = next.Encode()
	}
	for _, t := range page.Tasks {
		shown.Tasks = append(shown.Tasks, t.TaskRow)
		shown.Change = shown.Change || (t.Status == delaytask.Pending || t.Status == delaytask.Failed) &&
			v.allow(access.Change, t.Tag) == nil
	}
	v.count(&shown)
	return shown, nil
}

// count counts a whole list, where that is a read of an index alone. A list is shown without what cannot be counted.
func (v *view) count(shown *tasksPage) {
	f := shown.Filter
	f.After, f.Limit = "", 0
	if f.Tag == "" || f.Status == "" || f != (delaytask.Filter{Tag: f.Tag, Status: f.Status, Order: f.Order}) {
		return
	}
	counts, err := v.countsOf(f.Tag, f.Status)
	if err != nil {
		v.without(err)
		return
	}
	shown.Count, shown.Capped, shown.Counted = counts[0].Tasks, counts[0].More, true
}

// countsOf counts the tasks of a tag by their statuses.
func (v *view) countsOf(tag string, statuses ...delaytask.Status) ([]statusCount, error) {
	pairs := make([]row.Pair, len(statuses))
	for i, name := range statuses {
		status, _ := row.ParseStatus(name)
		pairs[i] = row.Pair{Tag: tag, Status: status}
	}
	found, err := v.store.Count(v.r.Context(), pairs, mostCounted+1)
	counts := make([]statusCount, len(found))
	for i, n := range found {
		counts[i] = statusCount{statuses[i], min(n, mostCounted), n > mostCounted}
	}
	return counts, err
}

// knownTags lists the tags that are served or paused and that the user sees. None are offered where they cannot be
// read.
func (v *view) knownTags() (tags []string) {
	if v.allow(access.Read, "") != nil {
		return nil
	}
	states, err := v.look().Tags(v.r.Context())
	if err != nil {
		v.without(err)
	}
	for _, s := range states {
		tags = append(tags, s.Tag)
	}
	return tags
}

// FirstLine is the beginning of an error.
func (v *view) FirstLine(t delaytask.TaskRow) string { return v.Line(t.Tag, t.LastError()) }

// Line is the beginning of an error of a task of the tag.
func (v *view) Line(tag, text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return v.beginning(tag, line, 160)
}

// Common is what failed tasks of a group have in common: the beginning of the error of one tells it.
func (v *view) Common(tag, example string) string {
	return listing.Masked(row.Failure{Tag: tag, Error: example}, v.Redacted)
}

// Group is the id of the group of failures that a failed task belongs to.
func (*view) Group(t *delaytask.TaskRow) string {
	text := t.ErrorStack
	return listing.GroupID(row.Failure{Tag: t.Tag, Error: text[:min(len(text), row.FailureSize)]})
}

// listCommand is a command on the same tasks: list, which shows the first page, cancel or retry.
func listCommand(verb string, f delaytask.Filter) string {
	f.After = ""
	query := wire.FilterValues(&f)
	var flags []string
	for _, name := range wire.FilterNames {
		flags = append(flags, flagOf.Replace(name), query.Get(name))
	}
	return sentence.Command(verb, flags...)
}

// flagOf makes the flag of a command of the name of a parameter.
var flagOf = strings.NewReplacer("due_from", "newer", "due_before", "older", "_", "-")
