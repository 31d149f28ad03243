package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

// Rule holds the spans that decide who is in a [View]. All nodes must use the same.
type Rule struct {
	Alive time.Duration       // a node is alive while its heartbeat is at most this old
	Near  time.Duration       // two look-ahead periods: what is due sooner after its save stays with its saver
	Gone  func(row.Node) bool // reports nodes that are dead whatever their heartbeat says; nil: none
}

// View is a snapshot of the live nodes: which nodes serve a tag, and which tasks this node arms. It never changes.
type View struct {
	near time.Duration
	tags map[string]servers
	all  servers // the nodes that serve any tag
}

// servers are the nodes that take new tasks of one tag, ordered by number.
type servers struct {
	numbers []int
	self    int               // position of this node, or -1
	takers  *takers           // nil where there are no servers
	parts   *[Turns]row.Share // the slots that this node takes within one turn, within two, and so on
}

// NewView reads the registry's rows as the node with the token self. A node counts while its heartbeat is fresh at now
// (the time of the same read), it is not leaving and not gone; that holds for self as for any other, so that all nodes
// see the same.
func NewView(self string, nodes []row.Node, now row.Time, rule Rule) *View {
	v := &View{near: rule.Near, tags: make(map[string]servers), all: servers{self: -1}}
	byNumber := slices.SortedFunc(slices.Values(nodes),
		func(a, b row.Node) int { return cmp.Compare(a.Number, b.Number) })
	for _, n := range byNumber {
		if n.Leaving || !isFresh(n, now, rule.Alive) || rule.Gone != nil && rule.Gone(n) {
			continue
		}
		for _, tag := range n.Tags {
			v.add(tag, n.Number, n.Token == self)
		}
		if len(n.Tags) > 0 {
			v.all.add(n.Number, n.Token == self)
		}
	}
	v.divide()
	return v
}

// divide divides the rows of each tag. Most tags have the same servers.
func (v *View) divide() {
	var known []servers
	divided := func(s servers) servers {
		at := slices.IndexFunc(known, func(k servers) bool { return slices.Equal(k.numbers, s.numbers) })
		if at < 0 {
			at = len(known)
			t := divide(s.numbers)
			known = append(known, servers{numbers: s.numbers, takers: t, parts: t.parts(s.self)})
		}
		s.takers, s.parts = known[at].takers, known[at].parts
		return s
	}
	if len(v.all.numbers) > 0 {
		v.all = divided(v.all)
	}
	for tag, s := range v.tags {
		v.tags[tag] = divided(s)
	}
}

func (v *View) add(tag string, number int, self bool) {
	s, ok := v.tags[tag]
	if !ok {
		s.self = -1
	}
	s.add(number, self)
	v.tags[tag] = s
}

func (s servers) same(other servers) bool {
	return s.self == other.self && slices.Equal(s.numbers, other.numbers)
}

func (s *servers) add(number int, self bool) {
	if self {
		s.self = len(s.numbers)
	}
	s.numbers = append(s.numbers, number)
}

// Plans reports whether a schedule is of this node's share among all nodes that serve a tag. While there is no such
// node, it is.
func (v *View) Plans(schedule int64) bool { return len(v.all.numbers) == 0 || v.all.assigned(schedule) }

// Same reports whether another look has found the same shares.
func (v *View) Same(other *View) bool {
	return v.all.same(other.all) && maps.EqualFunc(v.tags, other.tags, servers.same)
}

// Share returns which of the tag's shares is the node's, counted from 1, and how many there are. Position 0 says that
// it has none.
func (v *View) Share(tag string, number int) (position, total int) {
	s := v.tags[tag]
	if at, has := slices.BinarySearch(s.numbers, number); has {
		position = at + 1
	}
	return position, len(s.numbers)
}

// Others reports whether any of the tags is served by a node beside this one.
func (v *View) Others(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool {
		s := v.tags[tag]
		return len(s.numbers) > 1 || len(s.numbers) == 1 && s.self < 0
	})
}

// Served reports whether a live node has announced the tag.
func (v *View) Served(tag string) bool { return len(v.tags[tag].numbers) > 0 }

// Peers returns how many nodes divide the tasks that this node runs, itself among them: the most that serve any of
// its tags, and at least 1.
func (v *View) Peers() int {
	most := 1
	for _, s := range v.tags {
		if s.self >= 0 {
			most = max(most, len(s.numbers))
		}
	}
	return most
}

// Mine reports whether this node arms a new task, decided by the row alone: a task due soon after its save belongs to
// the node whose number its id carries, because no other node can have seen it in time. Any other is assigned among the
// nodes that serve its tag. It is false on every node for a tag without a live node.
func (v *View) Mine(id int64, due row.Time, tag string) bool {
	owner, found := v.Owner(id, due, tag)
	s := v.tags[tag]
	return found && s.self >= 0 && s.numbers[s.self] == owner.Number
}

// Owner is the node that arms a row.
type Owner struct {
	Number int
	// Share and Of say which rows of the tag are the node's: those for which [ids.OneOf] returns Share of Of. Of is 0
	// for a row that is its own because its process has saved it.
	Share, Of int
}

// Owner returns the node that arms a new task, by the rule of [View.Mine]. It returns false for a tag without a live
// node.
func (v *View) Owner(id int64, due row.Time, tag string) (Owner, bool) {
	s := v.tags[tag]
	if len(s.numbers) == 0 {
		return Owner{}, false
	}
	saved, number, _ := ids.Split(id)
	if due.Sub(row.At(saved)) < v.near {
		if _, serves := slices.BinarySearch(s.numbers, number); serves {
			return Owner{Number: number}, true
		}
	}
	slot := ids.HashSlot(id)
	return Owner{Number: s.numbers[s.takers[slot][0]], Share: slot, Of: ids.HashSlots}, true
}

// Serves reports whether this node takes new tasks of the tag.
func (v *View) Serves(tag string) bool { s, served := v.tags[tag]; return served && s.self >= 0 }

// SaverServes reports whether the node that saved the row serves its tag. Only a leased number tells.
func (v *View) SaverServes(id int64, tag string) bool {
	_, number, _ := ids.Split(id)
	_, serves := slices.BinarySearch(v.tags[tag].numbers, number)
	return ids.Valid(id) && serves
}

// Servers returns the numbers of the nodes that take new tasks of the tag, in order. The caller must not change them.
func (v *View) Servers(tag string) []int { return v.tags[tag].numbers }

func (s servers) assigned(id int64) bool { return int(s.takers[ids.HashSlot(id)][0]) == s.self }

// turns returns the positions of those that take a row, in order.
func (s servers) turns(id int64) []int16 {
	return s.takers[ids.HashSlot(id)][:min(Turns, len(s.numbers))]
}

// Turns is how many nodes take a row that its owner does not begin in time, the owner among them. What they leave, too,
// is found by the scan.
const Turns = 4

// Turn returns in which turn this node takes a row that is overdue: 0 for its owner, who should have begun it, and
// Turns or more where it leaves the row to others.
func (v *View) Turn(id int64, due row.Time, tag string) int {
	owner, found := v.Owner(id, due, tag)
	s := v.tags[tag]
	if !found || s.self < 0 {
		return Turns
	}
	self, turn := s.numbers[s.self], 0
	if owner.Number == self {
		return 0
	}
	for _, at := range s.turns(id) {
		switch taker := s.numbers[at]; taker {
		case owner.Number:
		case self:
			return turn + 1
		default:
			turn++
		}
	}
	return Turns
}

// TurnOfAny is Turn for a row of the node's share, whichever node saved it and whenever it is due.
func (v *View) TurnOfAny(id int64, tag string) int {
	s := v.tags[tag]
	if s.self < 0 {
		return 1
	}
	if turn := slices.Index(s.turns(id), int16(s.self)); turn >= 0 {
		return turn
	}
	return Turns
}

// Part returns which rows of the tag this node takes within so many turns, by their ids alone, and nil for all rows.
// The caller must not change it.
func (v *View) Part(tag string, turns int) *row.Share {
	s := v.tags[tag]
	if s.self < 0 || len(s.numbers) <= turns {
		return nil
	}
	return &s.parts[turns-1]
}
