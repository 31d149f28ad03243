package ledger

import "github.com/delaytask/delaytask/test/chaos/role"

// Growth is how much a process needed, by what it told every few seconds. First and last alone would show a moment; that nothing
// grows shows by the highest of the second half, held against the highest of the first.
type Growth struct {
	First role.State `json:"first"`
	Last  role.State `json:"last"`
	Early role.State `json:"early"` // the highest of the first half
	Late  role.State `json:"late"`  // and of the second
}

// GrowthOf reads what a process told, in its order.
func GrowthOf(states []role.State) (g Growth) {
	if len(states) == 0 {
		return g
	}
	half := (len(states) + 1) / 2
	return Growth{First: states[0], Last: states[len(states)-1], Early: highest(states[:half]), Late: highest(states[half:])}
}

func highest(states []role.State) (h role.State) {
	for _, s := range states {
		h = role.State{Memory: max(h.Memory, s.Memory), Goroutines: max(h.Goroutines, s.Goroutines)}
	}
	return h
}
