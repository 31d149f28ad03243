package runqueue

import "slices"

// A row that has lost its executor again and again may be what ends them. From suspectAt crashes on it is a suspect: it runs beside no
// other suspect, so that a further loss is its own, unless its process has seen that suspects do no harm. From loneAt on it runs beside
// none whatever the process has seen, and so does one whose next loss is its last.
const (
	ProbationAt = 2
	SoloAt      = 3
)

// suspects are the rows under suspicion that wait, and those that a crash of this process would count against. A process begins with one
// of them at a time. Each that ends for good while the process lives lets one more run beside the next ones: where an outage has put many
// innocent ones under suspicion they are soon through, and the one that does end processes meets few others, once, because all of
// these are then lone ones. The queue of those and that of the others take turns: a round of the others is as many as may run together.
// Then all that run come to their end first, however long the slowest takes.
type suspects struct {
	loneAt       uint8
	lone, others []*Item // that wait, oldest first
	held         []*Item // that are claimed, or being claimed
	survived     int     // that have come to an end here
	began        int     // of the others, since a lone one did
	round        int     // how many of them that was to be
}

func newSuspects(quarantine int) suspects { return suspects{loneAt: uint8(min(SoloAt, quarantine-1))} }

func (s *suspects) isLone(it *Item) bool { return it.Crashes >= s.loneAt }

func (s *suspects) push(it *Item) {
	queue := s.queue(it)
	*queue = append(*queue, it)
}

func (s *suspects) queue(it *Item) *[]*Item {
	if s.isLone(it) {
		return &s.lone
	}
	return &s.others
}

// drop takes out those that wait and are meant, and returns them.
func (s *suspects) drop(meant func(*Item) bool) (dropped []*Item) {
	for _, queue := range []*[]*Item{&s.lone, &s.others} {
		*queue = slices.DeleteFunc(*queue, func(it *Item) bool {
			if !meant(it) {
				return false
			}
			dropped = append(dropped, it)
			return true
		})
	}
	return dropped
}

// pick takes the next one that may run beside those that do, of those that may be taken at all; nil when there is none. No more than
// most run together.
func (s *suspects) pick(may func(*Item) bool, most int) *Item {
	together := max(min(1+s.survived, most), 1)
	lone, other := slices.IndexFunc(s.lone, may), slices.IndexFunc(s.others, may)
	switch {
	case len(s.held) > 0 && s.isLone(s.held[0]):
		return nil
	case lone >= 0 && (other < 0 || s.began > 0 && s.began >= s.round):
		if len(s.held) > 0 {
			return nil // those that run come to their end first
		}
		s.began, s.round = 0, together
		return s.take(&s.lone, lone)
	case other >= 0 && len(s.held) < together:
		s.began++
		return s.take(&s.others, other)
	}
	return nil
}

func (s *suspects) take(queue *[]*Item, i int) *Item {
	it := (*queue)[i]
	*queue = slices.Delete(*queue, i, i+1)
	s.held = append(s.held, it)
	return it
}

// acquit notes that a crash of this process could not count against the row any more, and reports whether it could. While its result
// is not stored it still could, also when its processor has returned.
func (s *suspects) acquit(it *Item) bool {
	i := slices.Index(s.held, it)
	if i < 0 {
		return false
	}
	s.held = slices.Delete(s.held, i, i+1)
	return true
}

// survive notes that a row has come to its end, and the process has not.
func (s *suspects) survive(it *Item) {
	if slices.Contains(s.held, it) {
		s.survived++
	}
}

// empty reports whether none waits.
func (s *suspects) empty() bool { return len(s.lone)+len(s.others) == 0 }

func (s *suspects) clear() { s.lone, s.others = nil, nil }
