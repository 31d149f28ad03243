// Package linear says whether the histories of single tasks are linearizable: whether one order of all that was done to
// a task, which keeps every return before every later call, explains all that was told. What is of unknown outcome may
// have happened at any time after its call, or never. The checker is porcupine; what a store may answer is the model
// here.
package linear

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Limit is how long the history of one task is thought about. One that takes longer is undecided: neither held nor
// broken.
const Limit = 5 * time.Second

// Counts are what was looked at.
type Counts struct {
	Tasks      int `json:"tasks"`
	Operations int `json:"operations"`
	Unknown    int `json:"unknown"`   // of these, without an answer that counts
	Undecided  int `json:"undecided"` // tasks whose history took too long
	Broken     int `json:"broken"`    // tasks whose history is not linearizable
}

// Add adds the counts of another run.
func (c *Counts) Add(o Counts) {
	c.Tasks += o.Tasks
	c.Operations += o.Operations
	c.Unknown += o.Unknown
	c.Undecided += o.Undecided
	c.Broken += o.Broken
}

// Violation is a task whose history no order explains.
type Violation struct {
	Task   int64           `json:"task"`
	Events []journal.Event `json:"events"` // its history
}

func (v Violation) String() string {
	return fmt.Sprintf("task %d: no order of what was done to it explains what was told", v.Task)
}

// Check judges what package history recorded, and the table at the end, in a journal that is in its order. Unless the
// journal says that its record is whole, a task may be missing, and one that a claim has left out may still be free.
// Where members of a cluster may be behind one another, a read may show what was; see behind.go.
func Check(events []journal.Event, behind bool) ([]Violation, Counts) {
	var violations []Violation
	var counts Counts
	histories := read(events, behind)
	for _, id := range slices.Sorted(maps.Keys(histories)) {
		h := histories[id]
		counts.Tasks++
		counts.Operations += len(h.ops)
		end := int64(len(events))
		operations := make([]porcupine.Operation, 0, len(h.ops)+1)
		for _, o := range h.ops {
			if o.open {
				counts.Unknown++
				o.returned = math.MaxInt64
			}
			operations = append(operations, porcupine.Operation{Input: o, Call: o.called, Return: o.returned})
		}
		operations = append(operations, porcupine.Operation{Input: &op{kind: theEnd}, Call: end, Return: end})
		switch porcupine.CheckOperationsTimeout(model(h.inserted), operations, Limit) {
		case porcupine.Illegal:
			counts.Broken++
			violations = append(violations, Violation{Task: id, Events: h.told()})
		case porcupine.Unknown:
			counts.Undecided++
		}
	}
	return violations, counts
}
