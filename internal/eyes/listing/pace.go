package listing

import "time"

// pace bounds for how long, and at how many rows, something looks. Its steps double: what a filter leaves out most of
// is looked at in large ones.
type pace struct {
	size int           // of the next step
	left int           // rows
	most time.Duration // in all

	began, last time.Time
	steps       int
}

// next returns how many rows the next step looks at, 0 when it would end too late. It expects that the step takes as
// long as the one before. The first one, which always is taken, tells nothing: it also opens the spans of a walk.
func (p *pace) next() int {
	now := time.Now()
	switch {
	case p.steps == 0:
		p.began = now
	case p.steps == 1 && now.Sub(p.began) > p.most, p.steps > 1 && now.Sub(p.began)+now.Sub(p.last) > p.most:
		return 0
	}
	n := min(p.size, p.left, mostMatched)
	p.size, p.left, p.last, p.steps = min(2*p.size, mostMatched), p.left-n, now, p.steps+1
	return n
}
