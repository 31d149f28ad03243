package nodebench

import (
	"fmt"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
)

// Claims are the rows that a process tried to claim, and those that it won.
type Claims struct {
	Tried int `json:"tried"`
	Won   int `json:"won"`
}

// claimsOf reads the metrics as whoever watches an application would.
func claimsOf(m *delaytask.Metrics) (c Claims, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return c, err
	}
	families, err := registry.Gather()
	if err != nil {
		return c, fmt.Errorf("read the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != "delaytask_claims_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			rows := int(series.GetCounter().GetValue())
			c.Tried += rows
			for _, label := range series.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "won" {
					c.Won += rows
				}
			}
		}
	}
	return c, nil
}

// Spread is by how many percent of an even share the process is off that ran the most, or the fewest, tasks for its
// share. Of nothing it is 0.
func Spread(ran []int) float64 {
	all := 0
	for _, n := range ran {
		all += n
	}
	if all == 0 {
		return 0
	}
	share, worst := float64(all)/float64(len(ran)), 0.0
	for _, n := range ran {
		worst = max(worst, math.Abs(float64(n)-share))
	}
	return 100 * worst / share
}

// Wasted is how many percent of the rows that processes tried to claim none of them won. Of nothing it is 0.
func Wasted(claims []Claims) float64 {
	var all Claims
	for _, c := range claims {
		all.Tried += c.Tried
		all.Won += c.Won
	}
	if all.Tried == 0 {
		return 0
	}
	return 100 * float64(all.Tried-all.Won) / float64(all.Tried)
}
