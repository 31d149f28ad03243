package fault

import (
	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/ledger"
)

// Count says how often each kind happened, and how often the journals show that it met something.
func Count(e *evidence.Evidence) map[string]ledger.Fault {
	shows := map[string]func(*evidence.Evidence, evidence.Episode) bool{}
	for _, k := range Kinds {
		shows[k.Name] = k.Shows
	}
	counts := map[string]ledger.Fault{}
	for _, f := range e.Episodes {
		n := counts[f.Kind]
		n.Injected++
		if show := shows[f.Kind]; show != nil && show(e, f) {
			n.Confirmed++
		}
		counts[f.Kind] = n
	}
	return counts
}
