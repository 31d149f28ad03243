package main

import (
	"fmt"
	"io"
	"time"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// scene is one task of the demo and its expected outcome.
type scene struct {
	Name  string // the task's key, except for the one that plain SQL saves
	Tag   string
	Delay time.Duration
	TTR   time.Duration

	moved    time.Duration // rescheduled to this delay
	fails    int           // attempts that fail before one succeeds
	killed   bool          // its process is killed in the middle of it
	cancels  bool
	plainSQL bool
}

// script is in the order of the due times. The task from plain SQL is due later than two look-aheads: a task of another
// process must be, to be on time.
var script = []scene{
	{Name: "order-1001", Tag: "order.close", Delay: 300 * time.Millisecond},
	{Name: "order-1002", Tag: "order.close", Delay: 900 * time.Millisecond},
	{Name: "welcome-7", Tag: "mail.send", Delay: 1200 * time.Millisecond, fails: 2},
	{Name: "order-1003", Tag: "order.close", Delay: 1500 * time.Millisecond, moved: 5500 * time.Millisecond},
	{Name: "coupon-9", Tag: "coupon.expire", Delay: 2 * time.Second, cancels: true},
	{Name: "invoice-3", Tag: "invoice.send", Delay: 2500 * time.Millisecond, plainSQL: true},
	{Name: "sales-2026", Tag: "report.build", Delay: 3 * time.Second, TTR: time.Second, killed: true},
	{Name: "order-1004", Tag: "order.close", Delay: 4500 * time.Millisecond},
}

const (
	mailBackoff = 500 * time.Millisecond
	reportTakes = 1500 * time.Millisecond
	killAfter   = 500 * time.Millisecond // of the report's start
)

// runs is how often the processor of the scene is called.
func (s *scene) runs() int {
	switch {
	case s.cancels:
		return 0
	case s.killed:
		return 2
	default:
		return s.fails + 1
	}
}

func (s *scene) attempts() int { return s.fails + 1 }

func tagsOf(scenes []scene) (tags []string) {
	seen := map[string]bool{}
	for _, s := range scenes {
		if !seen[s.Tag] {
			seen[s.Tag] = true
			tags = append(tags, s.Tag)
		}
	}
	return tags
}

// narrator prints what happens in plain words. It knows only what the play has seen.
type narrator struct {
	w      io.Writer
	offset offset
}

// say prints one line. A failed write does not end the play: its rows still have to be cleaned up.
func (t *narrator) say(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format+"\n", args...) }

func (t *narrator) introduce(dsn string, kind sqlstore.Kind) {
	t.say("A task is a row in a table. A service saves it, and runs it when it is due, to the millisecond.")
	if kind.Embedded() {
		t.say("The table is in %s: nothing but this program is needed.", config.MaskDSN(dsn))
		return
	}
	t.say("The table is in %s; the demo's tasks are deleted at the end.", config.MaskDSN(dsn))
}

func (t *narrator) started(pid int, first bool) {
	if first {
		t.say("\n1. A service starts (process %d) and saves tasks. Each line is a committed row.\n", pid)
		return
	}
	t.say("   The service is started again (process %d). It knows nothing but what the table says.\n", pid)
}

func (t *narrator) line(verb string, s *scene, rest string) {
	t.say("   %-11s %-14s %-11s %s", verb, s.Tag, s.Name, rest)
}

func (t *narrator) saved(s *scene) { t.line("saved", s, "due in "+span(s.Delay)) }

func (t *narrator) inserted(s *scene) {
	t.line("inserted", s, "due in "+span(s.Delay)+", by another program with plain SQL")
}

func (t *narrator) cancelled(s *scene) { t.line("cancelled", s, "it will not start") }

func (t *narrator) moved(s *scene) { t.line("rescheduled", s, "now due in "+span(s.moved)) }

func (t *narrator) duplicate(s *scene) {
	t.line("refused", s, "saved a second time, and its key is taken")
}

func (t *narrator) runs() {
	t.say("\n2. The tasks run. Times are UTC; the service read its clock in the first line of each processor.\n")
	t.say("   %-14s %-14s %-9s %-14s %-11s %s", "DUE", "STARTED", "LATE", "TAG", "TASK", "")
}

const clockLayout = "15:04:05.000"

func (t *narrator) start(e event, nth int) {
	s := sceneOf(e.Name)
	note := ""
	switch {
	case s.killed && nth > 1:
		note = "rescued: due again when the dead process's lease had ended"
	case s.killed:
		note = "takes " + span(reportTakes) + " of work"
	case e.Attempt > 1:
		note = fmt.Sprintf("attempt %d", e.Attempt)
	case s.moved != 0:
		note = "at its new time"
	case s.plainSQL:
		note = "the row from plain SQL"
	}
	due, at := e.Due.UTC(), e.At.Add(t.offset.middle()).UTC()
	t.say("   %-14s %-14s %-9s %-14s %-11s %s", due.Format(clockLayout), at.Format(clockLayout),
		lateness(t.offset.late(e.At, e.Due)), s.Tag, s.Name, note)
}

func (t *narrator) end(e event) {
	s := sceneOf(e.Name)
	switch {
	case e.Error != "":
		t.say("   %39s failed: %s; once more in %s", "", e.Error, span(mailBackoff))
	case s.killed:
		t.say("   %39s %s is done, by the second process", "", s.Name)
	}
}

func (t *narrator) killing(pid int) {
	t.say("\n3. The service is killed (SIGKILL, process %d) in the middle of %s.", pid, "report.build")
	t.say("   Its lease is %s long and is no longer renewed; then the task belongs to whoever is alive.",
		span(time.Second))
}
