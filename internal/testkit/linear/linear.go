// Package linear checks whether the histories of single tasks are linearizable: whether one order of all operations on
// a task, which keeps every return before every later call, explains all answers. An operation of unknown outcome may
// have happened at any time after its call, or never. The checker is porcupine. The model of what a store may answer is
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

// Limit is the time for the history of one task. A history that takes longer is undecided.
const Limit = 5 * time.Second

// Counts are what was looked at.
type Counts struct {
	Tasks      int `json:"tasks"`
	Operations int `json:"operations"`
	Unknown    int `json:"unknown"`   // of these, without an answer that counts
	Undecided  int `json:"undecided"` // tasks whose history took too long
	Broken     int `json:"broken"`    // tasks whose history is not linearizable
}

func (c *Counts) Add(o Counts) {
	c.Tasks += o.Tasks
	c.Operations += o.Operations
	c.Unknown += o.Unknown
	c.Undecided += o.Undecided
	c.Broken += o.Broken
}

// Violation is a task whose history is not linearizable.
type Violation struct {
	Task   int64           `json:"task"`
	Events []journal.Event `json:"events"` // its history
}

func (v Violation) String() string {
	return fmt.Sprintf("task %d: its history is not linearizable", v.Task)
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
