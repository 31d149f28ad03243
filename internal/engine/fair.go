package engine

// Where several tags are served, none takes all slots, whatever its tasks do: the more it has, the more have to be free for it to
// get another. So a tag whose tasks take minutes leaves some to those whose tasks take milliseconds, and a second such tag finds
// some as well. The rule is that of dynamic thresholds in switches with a shared buffer (Choudhury and Hahne, 1998).

// fairness is how many slots a tag may have for each that is free.
const fairness = 8

// fair is how many slots one tag may have beside what the others have: 56 of 64 when they have none, and the last one only as its
// first.
func (l *lines) fair(others int) int {
	left := l.workers - others
	switch {
	case l.open < 2:
		return l.workers
	case left <= 0:
		return 0
	default:
		return max(fairness*left/(fairness+1), 1)
	}
}

// share is how many slots rows of the tag may be claimed for, whatever is claimed beyond the slots.
func (l *lines) share(line *tagLine) int { return min(line.limit, l.fair(l.held-line.held)) }

// weigh renews what the tag has: slots in which its rows run, or rows that are claimed for a slot and not beyond.
func (l *lines) weigh(line *tagLine) {
	l.held -= line.held
	line.held = max(line.running, line.busy-line.flow.surplus)
	l.held += line.held
}
