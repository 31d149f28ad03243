package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

type TagInput struct {
	Tag string `path:"tag" doc:"A slash in it is written %2F; . and .. are written .~ and ..~"`
}

type wakeInput struct{ Body wire.Wake }

type windowInput struct {
	TagInput
	Window string `query:"window" doc:"Tasks that completed so long ago at most; default 1h, at most 7d"`
}

const (
	latenessWindow        = time.Hour
	longestLatenessWindow = 7 * 24 * time.Hour
)

func (a *API) tagOperations() {
	huma.Register(a.spec, a.perTag(a.operation(http.MethodGet, "/v1/tags", "listTags",
		"List the tags that are served or paused", "It counts nothing and is cheap; /v1/stats counts.", groupOperate)),
		a.tags)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/tags/{tag}/lateness", "lateness",
		"Tell how late a tag's tasks started",
		"Percentiles over the first starts of tasks that completed within the window.", groupOperate), a.lateness)

	const cluster = "On all nodes, within 2 s."
	pause := a.operation(http.MethodPost, "/v1/tags/{tag}/pause", "pauseTag", "Start no tasks of a tag",
		cluster+" What runs goes on. A tag that nothing has is paused, too, and the header Warning says so.",
		groupOperate)
	resume := a.operation(http.MethodPost, "/v1/tags/{tag}/resume", "resumeTag", "End a pause",
		cluster+" What is due starts at once.", groupOperate)
	pause.DefaultStatus, resume.DefaultStatus = http.StatusNoContent, http.StatusNoContent
	wake := a.operation(http.MethodPost, "/v1/wake", "wake", "Tell all nodes of rows that SQL has inserted",
		"They look at once for what is due of the tags, or falls due soon. Without it such rows may start up to 0.6 s "+
			"late. It needs the verb save.", groupOperate)
	wake.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, wake, a.wake)
	huma.Register(a.spec, pause, func(ctx context.Context, in *tagPauseInput) (*tagPaused, error) {
		met, err := a.operator.PauseTag(ctx, by(ctx), in.Tag, reasonOf(in.Body))
		if err != nil {
			return nil, a.problem(err)
		}
		answer := &tagPaused{}
		if met.Unseen {
			answer.Warning = `299 - "` + operate.Unseen + `"`
		}
		return answer, nil
	})
	huma.Register(a.spec, resume, func(ctx context.Context, in *TagInput) (*struct{}, error) {
		_, err := a.operator.ResumeTag(ctx, by(ctx), in.Tag)
		return nil, a.problem(err)
	})
}

type tagPauseInput struct {
	TagInput
	Body *wire.Pause
}

type tagPaused struct {
	Warning string `header:"Warning" doc:"Where no process serves the tag, and no task and no schedule has it"`
}

// reasonOf returns the reason of a pause. The body of the request may be missing.
func reasonOf(body *wire.Pause) delaytask.PauseOption {
	if body == nil {
		body = &wire.Pause{}
	}
	return delaytask.Reason(body.Reason)
}

// wakeTags is how many tags one call names.
const wakeTags = 100

func (a *API) wake(ctx context.Context, in *wakeInput) (*struct{}, error) {
	if n := len(in.Body.Tags); n == 0 || n > wakeTags {
		return nil, a.problem(fmt.Errorf("%w: tags: want 1 to %d, got %d", delaytask.ErrInvalidOption, wakeTags, n))
	}
	for _, tag := range in.Body.Tags {
		if err := allow(ctx, access.Save, tag); err != nil {
			return nil, a.problem(err)
		}
	}
	if err := a.scheduler.Wake(ctx, in.Body.Tags...); err != nil {
		return nil, a.problem(err)
	}
	return nil, nil
}

func (a *API) tags(ctx context.Context, _ *struct{}) (*output[wire.TagList], error) {
	return inRoom(ctx, a, tagsRoom, func() (wire.TagList, error) {
		tags, err := a.view(ctx, RawInput{}).Tags(ctx)
		return wire.FromTags(tags), err
	})
}

func (a *API) lateness(ctx context.Context, in *windowInput) (*output[wire.TagLateness], error) {
	window := wire.Duration(latenessWindow)
	if in.Window != "" {
		if err := window.UnmarshalText([]byte(in.Window)); err != nil {
			return nil, a.problem(fmt.Errorf("%w: window: %w", delaytask.ErrInvalidOption, err))
		}
		window = min(window, wire.Duration(longestLatenessWindow))
	}
	late, err := a.view(ctx, RawInput{}).Lateness(ctx, in.Tag, window.Std())
	return outputOf(a, wire.TagLateness{Tag: in.Tag, WindowMS: window.Std().Milliseconds(),
		Lateness: wire.FromLateness(late)}, err)
}

func (a *API) clusterOperations() {
	huma.Register(a.spec, a.perTag(a.operation(http.MethodGet, "/v1/nodes", "listNodes",
		"List the processes that share the database", "With the tags that each serves, and its share of their tasks.",
		groupOperate)), a.nodes)
	huma.Register(a.spec, a.perTag(a.operation(http.MethodGet, "/v1/stats", "stats",
		"Count tasks and show how punctual they are, per tag",
		"Page by page, by tag. Each page counts up to 10,000 tasks of a tag and status, and about 30,000 in all, "+
			"but 100 of each. For monitoring there is /metrics.",
		groupOperate)), a.stats)
}

func (a *API) nodes(ctx context.Context, _ *struct{}) (*output[wire.NodeList], error) {
	return inRoom(ctx, a, tagsRoom, func() (wire.NodeList, error) {
		nodes, _, err := a.view(ctx, RawInput{}).Nodes(ctx)
		return wire.FromNodes(nodes), err
	})
}

type statsInput struct {
	TagLimit
	After string `query:"after" doc:"next of the page before"`
}

func (a *API) stats(ctx context.Context, in *statsInput) (*output[wire.Stats], error) {
	most, err := in.most()
	if err != nil {
		return nil, a.problem(err)
	}
	return inRoom(ctx, a, int64(most)*tagRoom, func() (wire.Stats, error) {
		stats, next, err := a.view(ctx, RawInput{}).StatsAfter(ctx, in.After, most)
		page := wire.FromStats(stats)
		page.Next = next
		return page, err
	})
}
