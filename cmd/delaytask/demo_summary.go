package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	judge "github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/wire"
)

// demoSummary is the result by the rows and the workers' clocks.
type demoSummary struct {
	demoTally
	Rescheduled int        `json:"rescheduled"`
	Duplicates  int        `json:"duplicates_refused"`
	Retries     int        `json:"retries"`
	Rescued     int        `json:"rescued"`
	Lost        int        `json:"lost"`
	Early       int        `json:"early"`
	Tags        []*demoTag `json:"tags"`
	Wrong       []string   `json:"wrong,omitempty"` // what did not happen as the script says
}

type demoTag struct {
	Tag string `json:"tag"`
	demoTally
}

// demoTally counts tasks by what the table says.
type demoTally struct {
	Saved     int          `json:"saved"`
	Completed int          `json:"completed"`
	Failed    int          `json:"failed"`
	Cancelled int          `json:"cancelled"`
	Lateness  demoLateness `json:"lateness_ms,omitzero"` // absent where nothing has run
	late      []time.Duration
}

type demoLateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// summary reads every row back.
func (p *play) summary(ctx context.Context) (*demoSummary, error) {
	s := &demoSummary{}
	for i := range script {
		of := &script[i]
		tag := s.tag(of.Tag)
		for _, id := range p.idsOf(of) {
			task, err := p.operator.Get(ctx, delaytask.ID(id))
			if err != nil {
				return nil, err
			}
			tag.count(&task, true)
			s.count(&task, !of.killed)
			s.check(of, &task, len(p.startsOf(of)))
		}
		workers := map[int]bool{}
		for _, e := range p.startsOf(of) {
			workers[e.Worker] = true
			if certainlyEarly(e, p.clock) {
				s.Early++
				s.wrong("%s started before it was due", e.Name)
			}
		}
		if of.killed && len(workers) != 2 {
			s.wrong("%s was not taken over by another process", of.Name)
		}
	}
	if p.refused {
		s.Duplicates++
	}
	s.Lost = s.Saved - s.Completed - s.Failed - s.Cancelled
	return s, nil
}

func (s *demoSummary) tag(name string) *demoTag {
	for _, tag := range s.Tags {
		if tag.Tag == name {
			return tag
		}
	}
	s.Tags = append(s.Tags, &demoTag{Tag: name})
	return s.Tags[len(s.Tags)-1]
}

func (t *demoTally) count(task *delaytask.TaskRow, timely bool) {
	t.Saved++
	switch task.Status {
	case delaytask.Completed:
		t.Completed++
	case delaytask.Failed:
		t.Failed++
	case delaytask.Cancelled:
		t.Cancelled++
	}
	if task.Started.IsZero() || !timely {
		return
	}
	t.late = append(t.late, task.Lateness())
	slices.Sort(t.late)
	// The nearest rank: every figure is one that was measured.
	rank := func(percent int) float64 { return wire.Milliseconds(t.late[(len(t.late)*percent+99)/100-1]) }
	t.Lateness = demoLateness{P50: rank(50), P99: rank(99), Max: rank(100)}
}

// check compares a row with what the script says.
func (s *demoSummary) check(of *scene, task *delaytask.TaskRow, starts int) {
	s.Retries += max(0, task.Attempt-1)
	s.Rescued += task.CrashCount
	if of.moved != 0 {
		s.Rescheduled++
	}
	got := fmt.Sprintf("%s, attempts %d, crashes %d", task.Status, task.Attempt, task.CrashCount)
	if want := cmp.Or(of.ends, "completed, attempts 1, crashes 0"); got != want || starts != len(of.notes) {
		s.wrong("%s is %s, not %s; it was started %d times, not %d", of.Name, got, want, starts, len(of.notes))
	}
}

func (s *demoSummary) wrong(format string, args ...any) {
	s.Wrong = append(s.Wrong, fmt.Sprintf(format, args...))
}

func (s *demoSummary) print(w io.Writer, on screen) error {
	var out strings.Builder // one write, one error
	const chapter = "4. What the table says now. LATE is execution_time - expected_time of the rows."
	fmt.Fprintf(&out, "\n%s\n\n", on.paint(chapter, bold))
	t := newTable(&out, screen{colour: on.colour}, "   TAG", "SAVED", "COMPLETED", "FAILED", "CANCELLED",
		"LATE P50", "P99", "MAX")
	for _, tag := range s.Tags {
		cells := []string{"   " + tag.Tag}
		for _, n := range []int{tag.Saved, tag.Completed, tag.Failed, tag.Cancelled} {
			cells = append(cells, strconv.Itoa(n))
		}
		for _, ms := range []float64{tag.Lateness.P50, tag.Lateness.P99, tag.Lateness.Max} {
			cell := fmt.Sprintf("%.1f ms", ms)
			if len(tag.late) == 0 {
				cell = ""
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintf(&out, `
   %d saved, %d completed, %d retries, %d cancelled, %d rescheduled, %d duplicate refused, %d rescued.
   %d lost, %d early. Late, without the killed task: p50 %.1f ms, p99 %.1f ms, max %.1f ms.

What to do next
   delaytask migrate up --dsn 'user:password@tcp(host:3306)/name'   create the tables there
   delaytask save order.close '{"order":42}' --delay 30m            save a task; add --dsn
   delaytask explain ID                                             ask why it has not run
   go doc github.com/delaytask/delaytask                            run tasks in your own service
`, s.Saved, s.Completed, s.Retries, s.Cancelled, s.Rescheduled, s.Duplicates, s.Rescued, s.Lost, s.Early,
		s.Lateness.P50, s.Lateness.P99, s.Lateness.Max)
	if _, err := io.WriteString(raw(w), out.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// certainlyEarly reports whether a task was started before it was due. Workers report starts by the clock of this
// machine, tasks are due by the server's.
func certainlyEarly(e event, server judge.Clock) bool {
	return e.At.Add(server.Ahead + server.Within).Before(e.Due)
}
