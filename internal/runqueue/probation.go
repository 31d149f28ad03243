package runqueue

import "slices"

const (
	// ProbationAt is how many executors a task has lost that is on probation. It may be what ends them.
	ProbationAt = 2
	// SoloAt is how many a task has lost that runs beside no other on probation. A task whose next loss is its last
	// runs solo, too.
	SoloAt = 3
)

// probation holds the rows whose task has lost executors again and again. A process starts one of them at a time, so
// a further loss is the task's own. Each one that ends for good while the process lives lets one more run beside the
// next. So the innocent tasks of an outage are soon through.
//
// The task that does end processes may meet others then, but only once, because those run solo afterwards. Solo tasks
// and the others take turns: a round of the others is as many as may run together. All that run end first, however
// long the slowest takes.
type probation struct {
	soloAt       uint8
	solo, others []*Item // that wait, oldest first
	exposed      []*Item // that a crash of this process would count against
	proven       int     // that have ended here for good
	began        int     // of the others, since a solo one did
	round        int     // how many of the others begin between two solo ones
}

func newProbation(quarantine int) probation {
	return probation{soloAt: uint8(min(SoloAt, quarantine-1))}
}

func (p *probation) isSolo(it *Item) bool { return it.Crashes >= p.soloAt }

func (p *probation) push(it *Item) {
	if p.isSolo(it) {
		p.solo = append(p.solo, it)
	} else {
		p.others = append(p.others, it)
	}
}

// drop takes out those that wait and are meant, and returns them.
func (p *probation) drop(meant func(*Item) bool) (dropped []*Item) {
	for _, waiting := range []*[]*Item{&p.solo, &p.others} {
		*waiting = slices.DeleteFunc(*waiting, func(it *Item) bool {
			if !meant(it) {
				return false
			}
			dropped = append(dropped, it)
			return true
		})
	}
	return dropped
}

// pick takes the next row that may run beside those that do, of those that may be taken at all. It returns nil when
// there is none. No more than most run together.
func (p *probation) pick(may func(*Item) bool, most int) *Item {
	together := max(min(1+p.proven, most), 1)
	solo, other := slices.IndexFunc(p.solo, may), slices.IndexFunc(p.others, may)
	switch {
	case len(p.exposed) > 0 && p.isSolo(p.exposed[0]):
		return nil
	case solo >= 0 && (other < 0 || p.began > 0 && p.began >= p.round):
		if len(p.exposed) > 0 {
			return nil // those that run end first
		}
		p.began, p.round = 0, together
		return p.take(&p.solo, solo)
	case other >= 0 && len(p.exposed) < together:
		p.began++
		return p.take(&p.others, other)
	}
	return nil
}

func (p *probation) take(waiting *[]*Item, i int) *Item {
	it := (*waiting)[i]
	*waiting = slices.Delete(*waiting, i, i+1)
	p.exposed = append(p.exposed, it)
	return it
}

// exonerate notes that a crash of this process would not count against the row any more, and reports whether it would
// have. Until its result is stored it still would, also when its processor has returned.
func (p *probation) exonerate(it *Item) bool {
	i := slices.Index(p.exposed, it)
	if i < 0 {
		return false
	}
	p.exposed = slices.Delete(p.exposed, i, i+1)
	return true
}

// prove notes that a row has ended, and the process has not.
func (p *probation) prove(it *Item) {
	if slices.Contains(p.exposed, it) {
		p.proven++
	}
}

// empty reports whether none waits.
func (p *probation) empty() bool { return len(p.solo)+len(p.others) == 0 }

func (p *probation) clear() { p.solo, p.others = nil, nil }
