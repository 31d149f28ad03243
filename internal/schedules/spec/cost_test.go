package spec

import (
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

// A line without a tick is searched for many years, for each date that is left out. Another line ticks each second.
func TestALineWithoutTicksMakesTheOthersNoMoreExpensive(t *testing.T) {
	lines := []string{"0 12 * * *", "@every 1s", "!* 12 * * *"}
	for day := range 9 {
		lines = append(lines, fmt.Sprintf("!2027-02-0%d", day+1))
	}
	s, err := Parse(delaytask.Spec{Lines: lines, Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	s = s.bounded(leastCost)
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for at := from; at < from+500; at++ {
		if tick, found := s.next(at, none); !found || tick != at {
			t.Fatal(at, tick, found)
		}
	}
	if !s.spend(0) {
		t.Error("500 ticks cost more than one search may")
	}
}
