package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/view"
	"github.com/delaytask/delaytask/internal/wire"
)

type nodesOutput struct{ Body wire.NodeList }

type statsOutput struct{ Body wire.Stats }

func (a *API) clusterOperations() {
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/nodes", "listNodes", "List the processes that share the database",
		"With the tags that each serves, and its share of their tasks.", groupOperate), a.nodes)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/stats", "stats", "Count tasks and show how punctual they are, per tag",
		"It counts the whole table; for monitoring there is /metrics.", groupOperate), a.stats)
}

func (a *API) nodes(ctx context.Context, _ *struct{}) (*nodesOutput, error) {
	if err := allow(ctx, access.Operate, ""); err != nil {
		return nil, a.problem(err)
	}
	nodes, err := a.scheduler.Nodes(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &nodesOutput{wire.NodeList{Nodes: view.Nodes(nodes)}}
	for i := range out.Body.Nodes {
		n := &out.Body.Nodes[i]
		hidden := func(tag string) bool { return !access.From(ctx).May(access.Operate, tag) }
		n.Tags = slices.DeleteFunc(n.Tags, hidden)
		n.Shares = slices.DeleteFunc(n.Shares, func(share wire.Share) bool { return hidden(share.Tag) })
	}
	return out, nil
}

func (a *API) stats(ctx context.Context, _ *struct{}) (*statsOutput, error) {
	if err := allow(ctx, access.Operate, ""); err != nil {
		return nil, a.problem(err)
	}
	stats, err := a.scheduler.Stats(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	stats = slices.DeleteFunc(stats, func(t delaytask.TagStats) bool { return !access.From(ctx).May(access.Operate, t.Tag) })
	return &statsOutput{wire.Stats{Tags: view.Stats(stats)}}, nil
}
