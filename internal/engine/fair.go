package engine

// Where several tags are served, none takes all slots, whatever its tasks do: the more it has, the more have to be free for it to
// get another. So a tag whose tasks take minutes leaves some to those whose tasks take milliseconds, and a second such tag finds
// some as well. The rule is that of dynamic thresholds in switches with a shared buffer (Choudhury and Hahne, 1998).

// fairness is how many slots a tag may have for each that is free.
const fairness = 8

// fair is how many slots the tag may have beside what the others have now: 57 of 64 when they have none.
func (l *lines) fair(line *tagLine) int {
	if l.open < 2 {
		return l.workers
	}
	left := max(l.workers-(l.running-line.running), 0)
	return (fairness*left + fairness) / (fairness + 1)
}
