package nodebench

import (
	"fmt"

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
