//go:build !race

package spec_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// TestOracleAgrees compares Next and Prev with the oracle around the clock changes of 2000 to 2037 of every zone. With
// ZONEINFO=$(go env GOROOT)/lib/time/zoneinfo.zip the rules of zones give most changes, instead of a list of them.
func TestOracleAgrees(t *testing.T) {
	compared, windows := make(map[string]bool), 0
	for _, name := range zones(t) {
		if !*full && rand.IntN(16) != 0 {
			continue
		}
		zone := zoneOf(t, name)
		same := history(zone)
		if compared[same] {
			continue // another name of a zone, or one whose clocks change alike
		}
		compared[same] = true
		type pair struct {
			asked  *oracle
			parsed *spec.Spec
		}
		var pairs []pair
		for _, lines := range expressions {
			for _, rule := range rules {
				d := delaytask.Spec{Lines: lines, Zone: name, DST: rule}
				parsed, err := spec.Parse(d)
				mustOK(t, err)
				pairs = append(pairs, pair{newOracle(t, d), parsed})
			}
		}
		for _, change := range changes(zone) {
			w := newWalk(zone, change-around, change+around)
			for _, p := range pairs {
				windows++
				compare(t, p.parsed, w, p.asked)
			}
			for _, rule := range rules {
				// The middle of the gap or of the second pass.
				middle := change + (offset(zone, change-1)+offset(zone, change))/2
				d := delaytask.Spec{Zone: name, DST: rule, Lines: []string{
					"@at " + time.Unix(middle, 0).UTC().Format("2006-01-02T15:04:05"), "@at 2001-01-01T00:00:00Z"}}
				parsed, err := spec.Parse(d)
				mustOK(t, err)
				windows++
				compare(t, parsed, w, newOracle(t, d))
			}
		}
	}
	t.Logf("%d zones, %d windows", len(compared), windows)
}
