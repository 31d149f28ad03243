package spec

// What a search costs, in steps of about 0.1 µs. A line of 20 bytes can leave out nearly all ticks of another one, and
// a definition comes from a request.
const (
	costOfSegment  = 10  // a question to the zone
	costOfEmptyDay = 200 // a day that is looked through, and left out whole

	leastCost  = 400_000       // a search of 41 years for 16 lines that name no day of them
	costOfPrev = 4 * leastCost // its windows, each twice the one before, and their halves
	costOfTick = 1200          // twice the cost of 29 February in a zone with clock changes
)

// bounded returns a spec whose searches end after this many steps. It is for one caller.
func (s *Spec) bounded(steps int) *Spec {
	b := *s
	b.left = &steps
	return &b
}

// spend counts steps, and reports whether the search may go on.
func (s *Spec) spend(steps int) bool {
	if s.left == nil {
		return true
	}
	*s.left -= steps
	return *s.left >= 0
}
