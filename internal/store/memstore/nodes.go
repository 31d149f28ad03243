package memstore

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Tags implements [store.Nodes].
func (s *Store) Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error) {
	err = s.do(ctx, "read tags", func() { tags, look = s.tagStates(), s.planned.firstLook() })
	return tags, look, err
}

func (s *Store) tagStates() []row.TagState {
	return slices.SortedFunc(maps.Values(s.tags), func(a, b row.TagState) int { return cmp.Compare(a.Tag, b.Tag) })
}

// SetTag implements [store.Nodes].
func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	return s.do(ctx, "store a tag", func() { s.tags[t.Tag] = t })
}

// Cluster implements [store.Nodes].
func (s *Store) Cluster(ctx context.Context, fresh time.Duration) (c store.Cluster, err error) {
	err = s.do(ctx, "read the cluster", func() {
		c = store.Cluster{Tags: s.tagStates(), Look: s.planned.firstLook(), Reading: s.reading()}
		for _, n := range s.nodes {
			age := c.Reading.Time.Sub(n.Heartbeat).Abs()
			n.Heartbeat = 0
			c.Members += int64(crc32.ChecksumIEEE(fmt.Appendf(nil, "%+v %t", n, age <= fresh)))
		}
	})
	return c, err
}

// Nodes implements [store.Nodes].
func (s *Store) Nodes(ctx context.Context) (all []row.Node, reading row.Reading, err error) {
	err = s.do(ctx, "read nodes", func() { all, reading = slices.Clone(s.nodes), s.reading() })
	return all, reading, err
}

// Join implements [store.Nodes].
func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	return under(ctx, s, "join as a node", func() bool {
		at, held := s.findNode(n.Number)
		if !held {
			s.nodes = slices.Insert(s.nodes, at, row.Node{})
		} else if holder := s.nodes[at]; holder.Token != n.Token && s.now().Sub(holder.Heartbeat) <= staleAfter {
			return false
		}
		s.storeNode(at, n)
		return true
	})
}

// Beat implements [store.Nodes].
func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	return under(ctx, s, "keep the node alive", func() bool {
		at, held := s.findNode(n.Number)
		if !held || s.nodes[at].Token != n.Token {
			return false
		}
		s.storeNode(at, n)
		return true
	})
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

// known is a process that was introduced.
type known struct {
	process row.Process
	seen    row.Time
}

// Introduce implements [store.Nodes].
func (s *Store) Introduce(ctx context.Context, p row.Process) error {
	return s.do(ctx, "introduce the process", func() {
		if there, ok := s.known[p.ID]; ok {
			p = there.process
		}
		s.known[p.ID] = known{p, s.now()}
	})
}

// Processes implements [store.Nodes].
func (s *Store) Processes(ctx context.Context, ids []int64) ([]row.Process, error) {
	return under(ctx, s, "read the names of processes", func() (found []row.Process) {
		for _, id := range row.Distinct(ids) {
			if of, ok := s.known[id]; ok {
				found = append(found, of.process)
			}
		}
		return found
	})
}

// PurgeProcesses implements [store.Nodes].
func (s *Store) PurgeProcesses(ctx context.Context, before row.Time, limit int) (int, error) {
	return under(ctx, s, "purge processes", func() (deleted int) {
		byAge := func(a, b int64) int { return cmp.Compare(s.known[a].seen, s.known[b].seen) }
		for _, id := range slices.SortedFunc(maps.Keys(s.known), byAge) {
			if deleted >= limit || s.known[id].seen >= before {
				break
			}
			delete(s.known, id)
			deleted++
		}
		return deleted
	})
}

// Leave implements [store.Nodes].
func (s *Store) Leave(ctx context.Context, tokens []string) error {
	return s.do(ctx, "leave as a node", func() {
		s.nodes = slices.DeleteFunc(s.nodes, func(n row.Node) bool { return slices.Contains(tokens, n.Token) })
	})
}
