package arm

import (
	"slices"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
)

// mostParts bounds the reads that take the place of one. Beyond it, one reads the rows of all nodes.
const mostParts = 4

// Turn returns in which turn this process takes an overdue row: 0 for its own, [cluster.Turns] where it leaves the row
// to others. A process that only pops a tag comes behind the owner, and so does one that does not know the others yet.
func (a *Arm) Turn(d row.Due) int {
	s := a.shares.Load()
	switch {
	case !a.Tags.Open(d.Tag):
		return cluster.Turns
	case s == nil:
		return 1
	case !s.view.Served(d.Tag):
		return 0
	case !s.view.Serves(d.Tag):
		return 1
	}
	turn := s.view.Turn(d.ID, d.Due, d.Tag)
	if s.before != nil {
		turn = min(turn, s.before.Turn(d.ID, d.Due, d.Tag))
	}
	return turn
}

// Share returns which overdue rows of the tag this node takes within so many turns, by [Arm.TurnOfAny]. It returns
// false for all, as few nodes do for more than one turn.
func (a *Arm) Share(tag string, turns int) (row.Share, bool) {
	if a.Unassigned() || turns > 1 && !a.Census.Many() {
		return row.Share{}, false
	}
	if share := a.shares.Load().view.Part(tag, turns); share != nil {
		return *share, true
	}
	return row.Share{}, false
}

// Parts divides a window by the tags of which this process takes the same part of the rows within so many turns. Tags
// that the same nodes serve are one part, so there is one as a rule.
func (a *Arm) Parts(w row.Window, turns int) []row.Window {
	s := a.shares.Load()
	if s == nil {
		return []row.Window{w}
	}
	of := func(tag string) *row.Share {
		share := s.view.Part(tag, turns)
		if share == nil || s.before == nil {
			return share
		}
		before := s.before.Part(tag, turns)
		if before == nil {
			return nil
		}
		both := share.Or(*before)
		return &both
	}
	var parts []row.Window
	for _, tag := range w.Tags {
		share := of(tag)
		at := slices.IndexFunc(parts, func(p row.Window) bool {
			return p.Share == share || p.Share != nil && share != nil && *p.Share == *share
		})
		if at < 0 {
			if at = len(parts); at == mostParts {
				return []row.Window{w}
			}
			next := w
			next.Tags, next.Share = nil, share
			parts = append(parts, next)
		}
		parts[at].Tags = append(parts[at].Tags, tag)
	}
	return parts
}
