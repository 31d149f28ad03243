package bench

import "github.com/delaytask/delaytask/internal/usage"

// stolen adds up, for each measurement, the CPU time that the host of this virtual machine gave to others. Whoever has lost
// processors for some milliseconds is late by these milliseconds.
type stolen map[string]ticks

type ticks struct{ taken, all int64 }

func (s stolen) percent() map[string]float64 {
	percents := make(map[string]float64)
	for name, t := range s {
		if t.all > 0 {
			percents[name] = rounded("_pct", 100*float64(t.taken)/float64(t.all))
		}
	}
	return percents
}

// during counts for the named measurement what is stolen while f runs. Where nobody can say, it counts nothing.
func (s stolen) during(name string, f func() error) error {
	taken, all, unknown := usage.Stolen()
	err := f()
	if unknown != nil {
		return err
	}
	if takenThen, allThen, unknown := usage.Stolen(); unknown == nil {
		t := s[name]
		s[name] = ticks{t.taken + takenThen - taken, t.all + allThen - all}
	}
	return err
}
