package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/bulk"
	"github.com/delaytask/delaytask/internal/server/access"
)

// previewPage is what a bulk change would do. The moment is fixed here, so what comes later is not in it.
type previewPage struct {
	Verb    string
	Filter  delaytask.Filter
	Query   url.Values
	Tasks   int
	Capped  bool
	AsOf    time.Time
	Typed   string // what has to be typed
	Command string
}

// allTags is typed where the tasks are more than can be counted, and of all tags.
const allTags = "all tags"

// previewTime bounds the counting. What is left then makes the number a lower bound.
const previewTime = 1500 * time.Millisecond

// changeAll is CancelAll or RetryAll.
type changeAll func(context.Context, delaytask.Bulk) (delaytask.BulkResult, error)

// bulkOf reads what a bulk change is to do, and checks that the user may.
func (v *view) bulkOf(query url.Values) (f delaytask.Filter, clean url.Values, change changeAll, err error) {
	if f, clean, err = v.filterOf(query); err != nil {
		return f, nil, nil, err
	}
	var status delaytask.Status
	switch query.Get("verb") {
	case "cancel":
		change, status = v.scheduler.CancelAll, delaytask.Pending
	case "retry":
		change, status = v.scheduler.RetryAll, delaytask.Failed
	default:
		return f, nil, nil, errNoPage
	}
	if f.Status == "" {
		f.Status = status
	}
	f.After, f.Order = "", ""
	clean.Del("cursor")
	clean.Del("order")
	if err := v.allow(access.Change, f.Tag); err != nil {
		return f, nil, nil, err
	}
	if f.Tag == "" && !v.allTags(access.Change) {
		return f, nil, nil, invalid{"tag", errNeedsTag}
	}
	return f, clean, change, nil
}

var errNeedsTag = errors.New("you may change some tags only: name one")

// preview counts what a bulk change would change.
func (v *view) preview() (any, error) {
	verb := v.r.URL.Query().Get("verb")
	f, clean, change, err := v.bulkOf(v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), previewTime)
	defer cancel()
	found, err := change(ctx, delaytask.Bulk{Filter: f, DryRun: true})
	if ctx.Err() != nil && v.r.Context().Err() == nil {
		found.Capped, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	if found.AsOf.IsZero() {
		found.AsOf = v.Now
	}
	shown := previewPage{
		Verb: verb, Filter: f, Query: clean, Tasks: found.Tasks, Capped: found.Capped, AsOf: found.AsOf,
		Typed: strconv.Itoa(found.Tasks), Command: strings.Replace(listCommand(&f), " list", " "+verb, 1),
	}
	if found.Capped {
		shown.Typed = f.Tag
		if f.Tag == "" {
			shown.Typed = allTags
		}
	}
	return shown, nil
}

// startBulk begins the change that a preview has shown.
func (v *view) startBulk() (result, error) {
	form := v.r.PostForm
	verb, wanted := form.Get("verb"), form.Get("wanted")
	query, err := url.ParseQuery(form.Get("filter"))
	if err != nil {
		return result{}, errForm
	}
	query.Set("verb", verb)
	f, clean, change, err := v.bulkOf(query)
	if err != nil {
		return result{}, err
	}
	asOf, err := time.Parse(time.RFC3339Nano, form.Get("as_of"))
	if err != nil {
		return result{}, invalid{"as_of", errWhen}
	}
	typed := strings.TrimSpace(form.Get("typed"))
	if count := strings.ReplaceAll(typed, ",", ""); wanted == "" || typed != wanted && count != wanted {
		return result{}, invalid{"typed", fmt.Errorf("%w: type %q to confirm; nothing was changed", errForm, wanted)}
	}
	tasks, _ := strconv.Atoi(form.Get("tasks")) // for the bar alone
	about := bulk.About{
		Verb: verb, Tag: f.Tag, Filter: clean.Encode(), Who: v.Caller.Name(), Tasks: tasks,
		Capped: form.Get("capped") != "", AsOf: asOf,
	}
	filter := clean.Encode() + "&as_of=" + asOf.UTC().Format(time.RFC3339Nano)
	a := act{action: "bulk." + verb, tag: f.Tag, filter: filter}
	run := func(ctx context.Context, progress func(int)) (done int, err error) {
		err = v.audited(ctx, a, func(ctx context.Context) (int, error) {
			changed, err := change(ctx, delaytask.Bulk{Filter: f, AsOf: asOf, Progress: progress})
			done = changed.Tasks
			return done, err
		})
		return done, err
	}
	id, err := bridge.Bulks(v.scheduler).Start(about, run)
	if err != nil {
		return result{}, err
	}
	return result{to: "bulk/" + id}, nil
}

// runPage is a bulk change under way, or one that has ended.
type runPage struct {
	bulk.State
	Known bool // it is one of this process
	Mine  bool // the user may stop it
	Link  string
	Error string
}

// Percent is how far it is, for its bar.
func (p runPage) Percent() int {
	switch {
	case !p.Ended.IsZero() && p.Err == nil:
		return 100
	case p.Tasks == 0:
		return 0
	default:
		return min(99, 100*p.Done/p.Tasks)
	}
}

// run shows a bulk change.
func (v *view) run() (any, error) {
	found, known := bridge.Bulks(v.scheduler).Get(v.r.PathValue("id"))
	if !known || v.seesRun(found) != nil {
		return runPage{}, nil
	}
	shown := runPage{State: found, Known: true, Mine: v.allow(access.Change, found.Tag) == nil}
	shown.Link = found.Filter
	if found.Err != nil && !errors.Is(found.Err, bulk.ErrStopped) {
		shown.Error = v.redacted(found.Tag, found.Err.Error())
	}
	return shown, nil
}

// seesRun returns an error when the user may not see tasks of the run.
func (v *view) seesRun(s bulk.State) error {
	if s.Tag == "" && !v.allTags(access.Read) {
		return errForbidden
	}
	return v.allow(access.Read, s.Tag)
}

// stopRun stops a bulk change. What it has changed stays so.
func (v *view) stopRun() (result, error) {
	id := v.r.PathValue("id")
	found, known := bridge.Bulks(v.scheduler).Get(id)
	if !known || v.seesRun(found) != nil {
		return result{}, errNoPage
	}
	if err := v.allow(access.Change, found.Tag); err != nil {
		return result{}, err
	}
	bridge.Bulks(v.scheduler).Stop(id)
	return result{to: "bulk/" + id}, nil
}
