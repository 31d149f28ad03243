package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Pause stops all nodes from starting tasks of the tag, and the service from handing them out, within 2 s; what runs
// goes on. Tasks that fall due meanwhile wait. It takes [delaytask.Reason].
func (c *Client) Pause(ctx context.Context, tag string, opts ...delaytask.PauseOption) error {
	pause, err := request.NewPause(opts...)
	if err != nil {
		return err
	}
	return c.operate(ctx, tag, "pause", wire.Pause(pause))
}

// Resume ends a pause on all nodes, within 2 s. Tasks that fell due meanwhile start at once.
func (c *Client) Resume(ctx context.Context, tag string) error {
	return c.operate(ctx, tag, "resume", nil)
}

// Wake tells all processes that rows of the tags may be due now or soon that they do not know of: after a program has
// inserted them by SQL of its own. Up to 100 tags.
func (c *Client) Wake(ctx context.Context, tags ...string) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	r := &httpCall{method: http.MethodPost, path: "/v1/wake", body: wire.Wake{Tags: tags}, again: true}
	if _, err := c.call(ctx, r); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return nil
}

func (c *Client) operate(ctx context.Context, tag, op string, body any) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if !delaytask.ValidTag(tag) {
		return fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
	}
	r := &httpCall{method: http.MethodPost, path: "/v1/tags/" + wire.Segment(tag) + "/" + op, body: body,
		again: true}
	if _, err := c.call(ctx, r); err != nil {
		return fmt.Errorf("%s tag %s: %w", op, tag, err)
	}
	return nil
}

// Nodes returns the processes that share the service's database, by number.
func (c *Client) Nodes(ctx context.Context) ([]report.Node, error) {
	var list wire.NodeList
	err := c.read(ctx, "/v1/nodes", "read the nodes", &list)
	return list.To(), err
}

// Stats returns what there is of every tag that has tasks, is served or is paused, sorted by tag, as the
// library does.
func (c *Client) Stats(ctx context.Context) ([]report.TagStats, error) {
	q := url.Values{"limit": {strconv.Itoa(tagsListed)}}
	for all := []report.TagStats(nil); ; {
		var page wire.Stats
		if err := c.read(ctx, "/v1/stats?"+q.Encode(), "count tasks", &page); err != nil {
			return nil, err
		}
		if all = append(all, page.To()...); page.Next == "" {
			return all, nil
		}
		q.Set("after", page.Next)
	}
}

// Failures groups the newest failed tasks of the tag, or of all tags when it is "", as the library does.
func (c *Client) Failures(ctx context.Context, tag string) (report.Failures, error) {
	var w wire.Failures
	err := c.read(ctx, withQuery("/v1/failures", "tag", tag), "group failed tasks", &w)
	return w.To(), err
}

// Tags returns the tags that are served or paused and that the token may read. It counts nothing and is cheap.
func (c *Client) Tags(ctx context.Context) ([]report.TagState, error) {
	var list wire.TagList
	err := c.read(ctx, "/v1/tags", "read the tags", &list)
	return list.To(), err
}

func (c *Client) read(ctx context.Context, path, op string, into any) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	r := &httpCall{method: http.MethodGet, path: path, into: into, limit: listAnswer, again: true}
	if _, err := c.call(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// tagsListed is how many tags a service lists at once.
const tagsListed = 10_000

// listAnswer bounds lists of tags and nodes.
const listAnswer = 16 << 20
