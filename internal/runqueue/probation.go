package runqueue

import "slices"

const (
	// ProbationAt is how many lost executors put a task on probation: the task may be what ends them.
	ProbationAt = 2
	// SoloAt is how many make a task run solo: beside no other on probation. So does a task whose next loss would be
	// its last.
	SoloAt = 3
)

// probation holds the rows of tasks that have lost executors again and again. At first a process runs one of them at a
// time. Each one that ends for good lets one more run beside the next, so tasks that only met an outage are soon
// through. A task that ends processes may meet others there once, because it and they run solo afterwards.
//
// Solo tasks and the others take turns. A round of the others is as many as may run together. All that run have to end
// before the turn changes, however long the slowest takes.
type probation struct {
	soloAt       uint8
	solo, others []*Item // that wait, oldest first
	exposed      []*Item // those that run or are claimed: a crash of this process counts against them
	proven       int     // how many have ended here for good
	began        int     // how many of the others began since a solo one did
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

// pick takes the next row that may run beside the exposed ones, if may holds for it, or nil. At most most run together.
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

// exonerate lets others on probation run without waiting for the row, and reports whether they had to wait. As a rule
// that is when its result is stored: until then a crash counts against it, also when its processor has returned. The
// engine gives the turn back sooner where the row waits for something that may take long: a claim that is repeated,
// another transaction, an operator, the holder of its lease token, or a processor that goes on after CompleteTx.
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
