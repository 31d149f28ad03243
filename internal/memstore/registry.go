package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Tags implements [engine.Registry].
func (s *Store) Tags(ctx context.Context) ([]row.TagState, error) {
	if err := s.enter(ctx, "read tags"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.tags), func(a, b row.TagState) int { return cmp.Compare(a.Tag, b.Tag) }), nil
}

// SetTag implements [engine.Registry].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	if err := s.enter(ctx, "store a tag"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.tags[t.Tag] = t
	return nil
}

// Nodes implements [engine.Registry].
func (s *Store) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	if err := s.enter(ctx, "read nodes"); err != nil {
		return nil, row.Reading{}, err
	}
	defer s.mu.Unlock()
	nodes := slices.SortedFunc(maps.Values(s.nodes), func(a, b row.Node) int { return cmp.Compare(a.Number, b.Number) })
	for i := range nodes {
		nodes[i].Tags = slices.Clone(nodes[i].Tags)
	}
	return nodes, s.reading(), nil
}

// Join implements [engine.Registry].
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	if err := s.enter(ctx, "join as a node"); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	holder, held := s.nodes[n.Number]
	if held && holder.Token != n.Token && s.now().Sub(holder.Heartbeat) <= staleAfter {
		return false, nil
	}
	s.store(n)
	return true, nil
}

// Beat implements [engine.Registry].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	if err := s.enter(ctx, "keep the node alive"); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if holder, held := s.nodes[n.Number]; !held || holder.Token != n.Token {
		return false, nil
	}
	s.store(n)
	return true, nil
}

func (s *Store) store(n row.Node) {
	n.Tags = slices.Clone(n.Tags)
	n.Heartbeat = s.now()
	s.nodes[n.Number] = n
}

// Leave implements [engine.Registry].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	if err := s.enter(ctx, "leave as a node"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	maps.DeleteFunc(s.nodes, func(_ int, n row.Node) bool { return slices.Contains(tokens, n.Token) })
	return nil
}
