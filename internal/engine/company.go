package engine

// Nodes on one database divide its tasks, and each would send its statements at a pace of its own: n nodes n times as
// many as one, with an n-th of the rows in each. A statement costs the server more than a row, so n nodes claim and
// settle at an n-th of the pace, and together about as many times as one would.

// mostCompany bounds how much slower that is.
const mostCompany = 5

// company is how many nodes share the work, this one among them, as far as that slows it down.
func (a *armer) company() int {
	if s := a.shares.Load(); s != nil {
		return s.company
	}
	return 1
}
