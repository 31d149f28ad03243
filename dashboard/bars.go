package dashboard

import (
	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

const (
	barsWidth  = 600
	barsHeight = 120
)

// bar is a bar of a chart that the server draws.
type bar struct {
	X, Y, Width, Height int
	Class               string
}

// bars are bars beside each other. Values that are not exact look different.
type bars struct {
	Bars []bar
	Most int64
	Sum  int64
}

// barsOf draws how many tasks fall due in each step.
func barsOf(due []delaytask.DueTasks) bars {
	b := bars{Most: 1}
	for _, d := range due {
		b.Most, b.Sum = max(b.Most, d.Tasks), b.Sum+d.Tasks
	}
	for i, d := range due {
		x, next := i*barsWidth/len(due), (i+1)*barsWidth/len(due)
		height := int(d.Tasks * barsHeight / b.Most)
		if d.Tasks > 0 {
			height = max(height, 1)
		}
		drawn := bar{X: x, Y: barsHeight - height, Width: max(next-x-1, 1), Height: height, Class: "exact"}
		if d.Precision != processor.Exact {
			drawn.Class = "guess"
		}
		b.Bars = append(b.Bars, drawn)
	}
	return b
}
