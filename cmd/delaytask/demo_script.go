package main

import (
	"slices"
	"time"
)

// scene is a task of the demo, or a schedule.
type scene struct {
	Name  string // the task's key, except for the one that plain SQL saves
	Tag   string
	Delay time.Duration

	every    time.Duration // a schedule that ticks twice
	moved    time.Duration // rescheduled to this delay
	killed   bool          // its process is killed in the middle of it
	cancels  bool
	plainSQL bool
	notes    []string // about each of its starts, in their order
	ends     string   // how its row must end; default: completed in one attempt
}

// script has a schedule, and tasks in the order of their due times. The task from plain SQL is due later than two
// look-aheads: a task of another process must be, to be on time.
var script = []scene{
	{Name: "stock", Tag: "stock.count", every: 3 * time.Second,
		notes: []string{"tick 1 of the schedule", "tick 2 of the schedule"}},
	{Name: "order-1001", Tag: "order.close", Delay: 300 * time.Millisecond, notes: []string{""}},
	{Name: "order-1002", Tag: "order.close", Delay: 900 * time.Millisecond, notes: []string{""}},
	{Name: "welcome-7", Tag: "mail.send", Delay: 1200 * time.Millisecond,
		notes: []string{"", "attempt 2", "attempt 3"}, ends: "completed, attempts 3, crashes 0"},
	{Name: "order-1003", Tag: "order.close", Delay: 1500 * time.Millisecond, moved: 5500 * time.Millisecond,
		notes: []string{"at its new time"}},
	{Name: "coupon-9", Tag: "coupon.expire", Delay: 2 * time.Second, cancels: true,
		ends: "cancelled, attempts 0, crashes 0"},
	{Name: "invoice-3", Tag: "invoice.send", Delay: 2500 * time.Millisecond, plainSQL: true,
		notes: []string{"the row from plain SQL"}},
	{Name: "sales-2026", Tag: "report.build", Delay: 3 * time.Second, killed: true,
		notes: []string{"takes 1.5s of work", "rescued when its lease had ended"},
		ends:  "completed, attempts 1, crashes 1"},
	{Name: "order-1004", Tag: "order.close", Delay: 4500 * time.Millisecond, notes: []string{""}},
}

const (
	mailBackoff = 500 * time.Millisecond
	reportTakes = 1500 * time.Millisecond
	reportLease = time.Second
	successes   = 9
)

func sceneOf(name string) *scene {
	for i := range script {
		if script[i].Name == name {
			return &script[i]
		}
	}
	return nil
}

// tags are the tags of the script, in its order.
func tags() (all []string) {
	for _, s := range script {
		if !slices.Contains(all, s.Tag) {
			all = append(all, s.Tag)
		}
	}
	return all
}
