package api

import (
	"cmp"
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
)

const (
	tagsListed     = 1000
	mostTagsListed = 10_000
	// tagRoom is about what a tag takes in memory, in bytes: as it was read, as it is shown, and as JSON.
	tagRoom = 2 << 10
	// tagsRoom is for answers with little of each tag, of which all tags are shown.
	tagsRoom = 4 << 20
)

// TagLimit bounds an answer about all tags.
type TagLimit struct {
	Limit int `query:"limit" doc:"How many tags; default 1,000, at most 10,000"`
}

func (in *TagLimit) most() (int, error) {
	if in.Limit < 0 {
		return 0, fmt.Errorf("%w: limit: want 1 to %d", delaytask.ErrInvalidOption, mostTagsListed)
	}
	return min(cmp.Or(in.Limit, tagsListed), mostTagsListed), nil
}

// perTag makes the answer to an operation take room, because there may be thousands of tags.
func (a *API) perTag(op huma.Operation) huma.Operation {
	op.Middlewares = append(op.Middlewares, a.paged)
	return op
}

// inRoom reads an answer within so many bytes of room. The answer keeps them until its client has read it.
func inRoom[Body any](ctx context.Context, a *API, bytes int64, read func() (Body, error)) (*output[Body], error) {
	room := pageRoomOf(ctx)
	if err := room.enterRoom(ctx, a.bare, bytes); err != nil {
		return nil, err
	}
	body, err := read()
	room.keep(bytes)
	return outputOf(a, body, err)
}
