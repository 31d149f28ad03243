package judge

import "github.com/delaytask/delaytask/internal/testkit/journal"

// checker is a history and the violations found in it.
type checker struct {
	*history
	rules      Rules
	counts     Counts
	violations []Violation
}

// report notes a violation with the events that show it.
func (c *checker) report(p Invariant, task int64, what string, shown ...*journal.Event) {
	v := Violation{Invariant: p, Task: task, What: what}
	for _, e := range shown {
		if e != nil {
			v.Events = append(v.Events, *e)
		}
	}
	c.violations = append(c.violations, v)
}
