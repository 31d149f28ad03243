package main

import (
	"fmt"
	"strings"
	"time"

	judge "github.com/delaytask/delaytask/internal/bench/lateness"
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
	killAfter   = 500 * time.Millisecond // of the report's start
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

// narrator prints what happens in plain words. Its lines end by column 100.
type narrator struct {
	*app
	clock judge.Clock // of a server
}

// say prints one line. A failed write does not end the play: its rows still have to be cleaned up.
func (n *narrator) say(parts ...cell) {
	var line strings.Builder
	for _, part := range parts {
		line.WriteString(n.screen.paint(escaped(part.text), part.as))
	}
	if !n.json {
		_ = n.painted(line.String() + "\n")
	}
}

func words(as style, format string, args ...any) cell { return cell{fmt.Sprintf(format, args...), as} }

// chapter prints a heading between empty lines.
func (n *narrator) chapter(format string, args ...any) {
	n.say()
	n.say(words(bold, format, args...))
}

// done prints what was done to a scene.
func (n *narrator) done(verb string, as style, s *scene, format string, args ...any) {
	n.say(words(as, "   %-11s  ", verb), words(plain, "%-13s  %-10s  %s", s.Tag, s.Name, fmt.Sprintf(format, args...)))
}

const (
	clocks      = "   %-12s  %-12s  "
	runsAfter   = "%-8s  %-13s  %-10s  "
	clockLayout = "15:04:05.000"
)

func (n *narrator) started(e event, nth int) {
	s, note := sceneOf(e.Name), cell{}
	if nth <= len(s.notes) {
		note.text = s.notes[nth-1]
	}
	if s.killed && nth > 1 {
		note.as = green
	}
	at := e.At.Add(n.clock.Ahead)
	n.say(words(dim, clocks, e.Due.Local().Format(clockLayout), at.Local().Format(clockLayout)),
		words(plain, runsAfter, lateness(max(at.Sub(e.Due), 0)), s.Tag, s.Name), note)
}

func (n *narrator) ended(e event) {
	indent := words(plain, clocks+"%-8s  ", "", "", "")
	switch {
	case e.Error != "":
		n.say(indent, words(red, "failed: %s; once more in %s", e.Error, span(mailBackoff)))
	case sceneOf(e.Name).killed:
		n.say(indent, words(green, "%s is done, by the second process", e.Name))
	}
}
