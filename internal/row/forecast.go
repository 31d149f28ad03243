package row

import (
	"slices"
	"time"
)

// DueGrid divides pending rows into cells, by their tag and by when they are due.
type DueGrid struct {
	Tags  []string
	Now   Time // what is due before it is overdue
	Start Time // of the first step, at most Now
	Step  time.Duration
	Steps int
	Only  []int // the cells that are asked for; nil: all
}

// OverdueCell is the cell of what is due before Now. The cells after it, from 0 on, are the steps.
const OverdueCell = -1

// DueCell is a cell with the due times that belong to it, From inclusive and To exclusive. A row whose due time is not
// set is in none.
type DueCell struct {
	Cell     int
	From, To Time
}

// Cells returns the cells that are asked for, in order.
func (g *DueGrid) Cells() []DueCell {
	var cells []DueCell
	if g.Has(OverdueCell) {
		cells = append(cells, DueCell{OverdueCell, MinTime, g.Now})
	}
	for i := range g.Steps {
		if from := g.Start.Add(time.Duration(i) * g.Step); g.Has(i) {
			cells = append(cells, DueCell{i, max(from, g.Now), from.Add(g.Step)})
		}
	}
	return cells
}

// Has reports whether a cell is asked for.
func (g *DueGrid) Has(cell int) bool { return g.Only == nil || slices.Contains(g.Only, cell) }

// End returns the moment after the last cell.
func (g *DueGrid) End() Time {
	return max(g.Now, g.Start.Add(time.Duration(g.Steps)*g.Step))
}

// DueCount is how many rows a cell of a [DueGrid] has.
type DueCount struct {
	Tag  string
	Cell int
	Rows int64
	More bool // there are more
}

// Cursor returns the schedule with what its next ticks depend on alone.
func (s Schedule) Cursor() Schedule {
	return Schedule{ID: s.ID, Name: s.Name, Tag: s.Tag, Spec: s.Spec, Jitter: s.Jitter, MaxRuns: s.MaxRuns,
		Runs: s.Runs, Next: s.Next, Last: s.Last}
}
