package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/view"
	"github.com/delaytask/delaytask/internal/wire"
)

type TagInput struct {
	Tag string `path:"tag" doc:"A slash in it is written %2F"`
}

type tagsOutput struct{ Body wire.TagList }

type windowInput struct {
	TagInput
	Window string `query:"window" doc:"Tasks that completed so long ago at most; default 1h, at most 7d"`
}

type latenessOutput struct{ Body wire.TagLateness }

const (
	latenessWindow        = time.Hour
	longestLatenessWindow = 7 * 24 * time.Hour
)

func (a *API) tagOperations() {
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/tags", "listTags", "List the tags that are served or paused",
		"It counts nothing and is cheap; /v1/stats counts.", groupOperate), a.tags)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/tags/{tag}/lateness", "lateness", "Tell how late a tag's tasks started",
		"Percentiles over the first starts of tasks that completed within the window.", groupOperate), a.lateness)

	const cluster = "On all nodes, within 2 s."
	pause := a.operation(http.MethodPost, "/v1/tags/{tag}/pause", "pauseTag", "Start no tasks of a tag", cluster+" What runs goes on.",
		groupOperate)
	resume := a.operation(http.MethodPost, "/v1/tags/{tag}/resume", "resumeTag", "End a pause", cluster+" What is due starts at once.",
		groupOperate)
	pause.DefaultStatus, resume.DefaultStatus = http.StatusNoContent, http.StatusNoContent
	huma.Register(a.spec, pause, a.operate(a.scheduler.Pause))
	huma.Register(a.spec, resume, a.operate(a.scheduler.Resume))
}

func (a *API) operate(do func(context.Context, string) error) func(context.Context, *TagInput) (*struct{}, error) {
	return func(ctx context.Context, in *TagInput) (*struct{}, error) {
		if err := allow(ctx, access.Operate, in.Tag); err != nil {
			return nil, a.problem(err)
		}
		if err := do(ctx, in.Tag); err != nil {
			return nil, a.problem(err)
		}
		return nil, nil
	}
}

func (a *API) tags(ctx context.Context, _ *struct{}) (*tagsOutput, error) {
	if err := allow(ctx, access.Read, ""); err != nil {
		return nil, a.problem(err)
	}
	tags, err := a.scheduler.Tags(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &tagsOutput{wire.TagList{Tags: []wire.Tag{}}}
	for _, t := range tags {
		if access.From(ctx).May(access.Read, t.Tag) {
			out.Body.Tags = append(out.Body.Tags, wire.Tag(t))
		}
	}
	return out, nil
}

func (a *API) lateness(ctx context.Context, in *windowInput) (*latenessOutput, error) {
	if err := allow(ctx, access.Read, in.Tag); err != nil {
		return nil, a.problem(err)
	}
	window := wire.Duration(latenessWindow)
	if in.Window != "" {
		if err := window.UnmarshalText([]byte(in.Window)); err != nil {
			return nil, a.problem(fmt.Errorf("%w: window: %w", delaytask.ErrInvalidOption, err))
		}
		window = min(window, wire.Duration(longestLatenessWindow))
	}
	late, err := a.scheduler.Lateness(ctx, in.Tag, window.Std())
	if err != nil {
		return nil, a.problem(err)
	}
	return &latenessOutput{wire.TagLateness{Tag: in.Tag, WindowMS: window.Std().Milliseconds(), Lateness: view.Lateness(late)}}, nil
}
