package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
)

// demoSummary is what the rows say in the end, in all and by tag.
type demoSummary struct {
	demoTally
	Tags []*demoTally `json:"tags"`
}

type demoTally struct {
	Tag       string        `json:"tag,omitempty"`
	Saved     int           `json:"saved"`
	Completed int           `json:"completed"`
	Cancelled int           `json:"cancelled"`
	Retries   int           `json:"retries"`
	Rescued   int           `json:"rescued"`
	Latest    time.Duration `json:"latest_ns"` // how late a task started at most
}

// conclude reads every row back, prints what they say, and returns what did not happen as the script says.
func (p *play) conclude(ctx context.Context) error {
	sum := demoSummary{}
	var wrong error
	for _, tag := range tags() {
		t := &demoTally{Tag: tag}
		sum.Tags = append(sum.Tags, t)
		for i := range script {
			s := &script[i]
			for _, id := range p.ids[s.Name] {
				if s.Tag != tag {
					continue
				}
				task, err := p.operator.Get(ctx, delaytask.ID(id))
				if err != nil {
					return err
				}
				t.count(&task)
				sum.count(&task)
				wrong = errors.Join(wrong, s.check(&task, p.starts[s.Name]))
			}
		}
	}
	if wrong != nil {
		return wrong
	}
	if p.json {
		return p.printJSON(sum)
	}
	return p.print(&sum)
}

func (t *demoTally) count(task *delaytask.TaskRow) {
	t.Saved++
	switch task.Status {
	case delaytask.Completed:
		t.Completed++
	case delaytask.Cancelled:
		t.Cancelled++
	}
	t.Retries += max(0, task.Attempt-1)
	t.Rescued += task.CrashCount
	if !task.Started.IsZero() {
		t.Latest = max(t.Latest, task.Lateness())
	}
}

// check compares a row, and the starts of its scene, with what the script says.
func (s *scene) check(task *delaytask.TaskRow, starts []event) error {
	got := fmt.Sprintf("%s, attempts %d, crashes %d", task.Status, task.Attempt, task.CrashCount)
	if want := cmp.Or(s.ends, "completed, attempts 1, crashes 0"); got != want || len(starts) != len(s.notes) {
		return fmt.Errorf("%s is %s, not %s; it was started %d times, not %d", s.Name, got, want, len(starts),
			len(s.notes))
	}
	for _, e := range starts {
		if e.At.Before(e.Due) {
			return fmt.Errorf("%s started before it was due", s.Name)
		}
	}
	if s.killed && starts[0].Worker == starts[1].Worker {
		return fmt.Errorf("%s was not taken over by another process", s.Name)
	}
	return nil
}

func (p *play) print(sum *demoSummary) error {
	p.chapter("4. What the table says now. LATEST is execution_time - expected_time of the rows.")
	p.say()
	t := p.newTable("   TAG", "SAVED", "COMPLETED", "CANCELLED", "RETRIES", "RESCUED", "LATEST")
	for _, tag := range sum.Tags {
		cells := []string{"   " + tag.Tag}
		for _, n := range []int{tag.Saved, tag.Completed, tag.Cancelled, tag.Retries, tag.Rescued} {
			cells = append(cells, strconv.Itoa(n))
		}
		t.row(append(cells, lateness(tag.Latest))...)
	}
	return errors.Join(t.flush(), p.printf(`
   %d saved, %d completed, %d cancelled, %d retries, %d rescued.
   None lost, none early.

What to do next
   delaytask migrate up --dsn 'user:password@tcp(host:3306)/name'   create the tables there
   delaytask save order.close '{"order":42}' --delay 30m            save a task; add --dsn
   delaytask explain ID                                             ask why it has not run
   go doc github.com/delaytask/delaytask                            run tasks in your own service
`, sum.Saved, sum.Completed, sum.Cancelled, sum.Retries, sum.Rescued))
}
