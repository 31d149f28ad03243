package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
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

// bulkOf reads what a bulk change is to do, and checks that the user may.
func (v *view) bulkOf(query url.Values) (change *operate.Change, clean url.Values, err error) {
	f, clean, err := v.filterOf(query)
	if err != nil {
		return nil, nil, err
	}
	clean.Del("cursor")
	clean.Del("order")
	if err := v.allow(access.Change, f.Tag); err != nil {
		return nil, nil, err
	}
	change, err = v.operator.Bulk(v.by(), query.Get("verb"), f)
	switch {
	case errors.Is(err, operate.ErrAction):
		return nil, nil, errNoPage
	case errors.Is(err, operate.ErrSomeTags): // of the named tag it is not
		return nil, nil, invalid{field: "tag", want: "want.tag"}
	}
	return change, clean, err
}

// preview counts what a bulk change would change.
func (v *view) preview() (any, error) {
	change, clean, err := v.bulkOf(v.r.URL.Query())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), previewTime)
	defer cancel()
	found, err := change.Count(ctx, delaytask.Bulk{})
	if ctx.Err() != nil && v.r.Context().Err() == nil {
		found.Capped, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	if found.AsOf.IsZero() {
		found.AsOf = v.Now
	}
	verb, f := change.Action, change.Filter
	shown := previewPage{
		Verb: verb, Filter: f, Query: clean, Tasks: found.Tasks, Capped: found.Capped, AsOf: found.AsOf,
		Typed: strconv.Itoa(found.Tasks), Command: listCommand(verb, f),
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
	change, _, err := v.bulkOf(query)
	if err != nil {
		return result{}, err
	}
	asOf, err := time.Parse(time.RFC3339Nano, form.Get("as_of"))
	if err != nil || asOf.IsZero() || !wire.Written(asOf) {
		return result{}, invalid{field: "as_of", want: "want.time"}
	}
	if asOf, err = v.operator.AsOf(v.r.Context(), asOf); err != nil { // what is saved from now on was in no preview
		return result{}, err
	}
	typed := strings.TrimSpace(form.Get("typed"))
	if count := strings.ReplaceAll(typed, ",", ""); wanted == "" || typed != wanted && count != wanted {
		return result{}, invalid{field: "typed", want: "want.typed", arg: wanted}
	}
	tasks, _ := strconv.Atoi(form.Get("tasks")) // for the bar alone
	about := bulk.About{Tasks: max(tasks, 0), Capped: form.Get("capped") != "", AsOf: asOf}
	started, err := change.Start(v.r.Context(), about)
	return result{to: "bulk/" + started.ID}, err
}

// runPage is a bulk change under way, or one that has ended.
type runPage struct {
	bulk.State
	Known bool   // there is such a run
	Mine  bool   // the user may stop it
	Link  string // the query of the tasks that it changes; "" where its process does not tell
}

// Status is the status of the answer.
func (p runPage) Status() int {
	if !p.Known {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// UnderWay reports whether it may go on.
func (p runPage) UnderWay() bool { return p.Ended.IsZero() }

// Stoppable reports whether the user may ask it to stop, and its process may hear it.
func (p runPage) Stoppable() bool {
	return p.Mine && p.UnderWay() && !p.Stopping && p.Outcome != bulk.Untold
}

// Percent is how far it is, for its bar.
func (p runPage) Percent() int {
	switch {
	case p.Outcome == bulk.Done:
		return 100
	case p.Tasks == 0:
		return 0
	default:
		return min(99, 100*p.Done/p.Tasks)
	}
}

// run shows a bulk change.
func (v *view) run() (any, error) {
	found, err := v.look().Run(v.r.Context(), v.r.PathValue("id"))
	switch {
	case errors.Is(err, bulk.ErrUnknown):
		return runPage{}, nil
	case err != nil:
		return nil, err
	}
	return v.runOf(&found), nil
}

func (v *view) runOf(found *bulk.State) runPage {
	shown := runPage{State: *found, Known: true, Mine: v.allow(access.Change, found.Filter.Tag) == nil}
	if shown.Detail = v.Redacted(found.Filter.Tag, found.Detail); !found.AsOf.IsZero() {
		shown.Link = wire.FilterValues(&found.Filter).Encode()
	}
	return shown
}

// Broke says why a bulk change has failed.
func (v *view) Broke(p runPage) string {
	if p.Err == nil {
		return ""
	}
	failure := v.Failure(p.Err) // what a database says may name hosts and users
	if told, stored := errors.AsType[bulk.Told](p.Err); stored {
		failure = string(told)
	}
	return v.Redacted(p.Filter.Tag, failure)
}

// changesPage is the newest bulk changes of all processes.
type changesPage struct {
	Runs []runPage
}

// changes lists bulk changes.
func (v *view) changes() (any, error) {
	found, err := v.look().Runs(v.r.Context())
	if err != nil {
		return nil, err
	}
	shown := changesPage{Runs: make([]runPage, len(found))}
	for i := range found {
		shown.Runs[i] = v.runOf(&found[i])
	}
	return shown, nil
}

// stopRun stops a bulk change. What it has changed stays so.
func (v *view) stopRun() (result, error) {
	run, err := v.operator.StopRun(v.r.Context(), v.by(), v.r.PathValue("id"))
	if errors.Is(err, bulk.ErrUnknown) {
		err = errNoPage
	}
	return result{to: "bulk/" + run.ID}, err
}
