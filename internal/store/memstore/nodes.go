package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Tags implements [store.Nodes].
func (s *Store) Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error) {
	if err := s.enter(ctx, "read tags"); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	tags = slices.SortedFunc(maps.Values(s.tags), func(a, b row.TagState) int { return cmp.Compare(a.Tag, b.Tag) })
	return tags, s.planned.firstLook(), nil
}

// SetTag implements [store.Nodes].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	if err := s.enter(ctx, "store a tag"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.tags[t.Tag] = t
	return nil
}

// Nodes implements [store.Nodes].
func (s *Store) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	if err := s.enter(ctx, "read nodes"); err != nil {
		return nil, row.Reading{}, err
	}
	defer s.mu.Unlock()
	return slices.Clone(s.nodes), s.reading(), nil
}

// Join implements [store.Nodes].
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	if err := s.enter(ctx, "join as a node"); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	at, held := s.findNode(n.Number)
	if !held {
		s.nodes = slices.Insert(s.nodes, at, row.Node{})
	} else if holder := s.nodes[at]; holder.Token != n.Token && s.now().Sub(holder.Heartbeat) <= staleAfter {
		return false, nil
	}
	s.storeNode(at, n)
	return true, nil
}

// Beat implements [store.Nodes].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	if err := s.enter(ctx, "keep the node alive"); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	at, held := s.findNode(n.Number)
	if !held || s.nodes[at].Token != n.Token {
		return false, nil
	}
	s.storeNode(at, n)
	return true, nil
}

func (s *Store) findNode(number int) (at int, found bool) {
	byNumber := func(n row.Node, number int) int { return cmp.Compare(n.Number, number) }
	return slices.BinarySearchFunc(s.nodes, number, byNumber)
}

// storeNode replaces the node at the place. The stored tags are not the caller's slice.
func (s *Store) storeNode(at int, n row.Node) {
	n.Tags = slices.Clone(n.Tags)
	n.Heartbeat = s.now()
	s.nodes[at] = n
}

// Leave implements [store.Nodes].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	if err := s.enter(ctx, "leave as a node"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.nodes = slices.DeleteFunc(s.nodes, func(n row.Node) bool { return slices.Contains(tokens, n.Token) })
	return nil
}
