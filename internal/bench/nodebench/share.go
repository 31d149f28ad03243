package nodebench

import "math"

// Spread is by how many percent of an even share the process is off that ran the most, or the fewest, tasks for its share. Of
// nothing it is 0.
func Spread(ran []int) float64 {
	all := 0
	for _, n := range ran {
		all += n
	}
	if all == 0 {
		return 0
	}
	share, worst := float64(all)/float64(len(ran)), 0.0
	for _, n := range ran {
		worst = max(worst, math.Abs(float64(n)-share))
	}
	return 100 * worst / share
}

// Wasted is how many percent of the rows that processes tried to claim none of them won. Of nothing it is 0.
func Wasted(claims []Claims) float64 {
	var all Claims
	for _, c := range claims {
		all.Tried += c.Tried
		all.Won += c.Won
	}
	if all.Tried == 0 {
		return 0
	}
	return 100 * float64(all.Tried-all.Won) / float64(all.Tried)
}
