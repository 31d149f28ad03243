package main

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

func TestOnTimeIsWhatIsNeverLateAgain(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	due := func(id int64) time.Time { return began.Add(time.Duration(id) * time.Second) }
	var tasks []delaytask.TaskRow
	for _, id := range []int64{4, 3, 2, 1, 6, 5, -1} { // in no order
		tasks = append(tasks, delaytask.TaskRow{ID: id, Expected: due(id)})
	}
	for name, tt := range map[string]struct {
		late []int64 // tasks that start late
		none []int64 // tasks that do not start
		from int64
	}{
		"all on time":               {nil, nil, 1},
		"late at first":             {[]int64{1, 2}, nil, 3},
		"on time, and late again":   {[]int64{1, 3}, nil, 4},
		"one does not start":        {nil, []int64{2}, 3},
		"late before the start":     {[]int64{-1}, nil, 1},
		"late after the end":        {[]int64{6}, nil, 1},
		"late at the end":           {[]int64{5}, nil, 0},
		"nothing starts at the end": {nil, []int64{5}, 0},
	} {
		starts := lateness.NewStarts(len(tasks))
		for _, task := range tasks {
			switch late := probeOnTime - 1; {
			case slices.Contains(tt.none, task.ID):
			case slices.Contains(tt.late, task.ID):
				starts.Add(task.ID, task.Expected.Add(late+1))
			default:
				starts.Add(task.ID, task.Expected.Add(late))
			}
		}
		from, onTime := onTimeFrom(dueBetween(tasks, began, due(5)), starts, probeOnTime)
		if onTime != (tt.from > 0) || onTime && !from.Equal(due(tt.from)) {
			t.Errorf("%s: from %v on, %v, want %v", name, from, onTime, due(tt.from))
		}
	}
}
