package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// scene is one task of the demo, or a schedule, and its expected outcome.
type scene struct {
	Name  string // the task's key, except for the one that plain SQL saves
	Tag   string
	Delay time.Duration
	TTR   time.Duration

	every    time.Duration // a schedule that runs twice
	moved    time.Duration // rescheduled to this delay
	fails    int           // attempts that fail before one succeeds
	killed   bool          // its process is killed in the middle of it
	cancels  bool
	plainSQL bool
}

// script has a schedule, and tasks in the order of their due times. The task from plain SQL is due later than two
// look-aheads: a task of another process must be, to be on time.
var script = []scene{
	{Name: "stock", Tag: "stock.count", every: 3 * time.Second},
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
	ticks       = 2                      // of the schedule
)

// runs is how often the processor of the scene is called.
func (s *scene) runs() int {
	switch {
	case s.cancels:
		return 0
	case s.killed:
		return 2
	case s.every != 0:
		return ticks
	default:
		return s.fails + 1
	}
}

// tasks is how many tasks of the scene succeed.
func (s *scene) tasks() int {
	switch {
	case s.cancels:
		return 0
	case s.every != 0:
		return ticks
	default:
		return 1
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

// narrator prints what happens in plain words. It knows only what the play has seen. Its lines end by
// column 100.
type narrator struct {
	w      io.Writer
	screen screen
	offset offset
}

// say prints one line. A failed write does not end the play: its rows still have to be cleaned up.
func (t *narrator) say(parts ...cell) {
	var line strings.Builder
	for _, part := range parts {
		line.WriteString(t.screen.paint(escaped(part.text), part.as))
	}
	_, _ = fmt.Fprintln(raw(t.w), line.String()) // the texts are escaped, and colours must not be
}

func words(as style, format string, args ...any) cell { return cell{fmt.Sprintf(format, args...), as} }

// chapter prints a heading with an empty line before it.
func (t *narrator) chapter(format string, args ...any) {
	t.say()
	t.say(words(bold, format, args...))
}

func (t *narrator) introduce(dsn string, kind sqlstore.Kind) {
	t.say(words(plain,
		"A task is a row in a table. A service saves it, and runs it when it is due, to the millisecond."))
	if kind.Embedded() {
		t.say(words(plain, "The table is in %s: nothing but this program is needed.", config.MaskDSN(dsn)))
		return
	}
	t.say(words(plain, "The table is in %s; the demo's tasks are deleted at the end.", config.MaskDSN(dsn)))
}

func (t *narrator) started(pid int, first bool) {
	if first {
		t.chapter("1. A service starts (process %d) and saves tasks. Each line is a committed row.", pid)
	} else {
		t.say(words(plain,
			"   The service is started again (process %d). It knows nothing but what the table says.", pid))
	}
	t.say()
}

func (t *narrator) line(verb cell, s *scene, rest string) {
	t.say(words(verb.as, "   %-11s  ", verb.text), words(plain, "%-13s  %-10s  %s", s.Tag, s.Name, rest))
}

func (t *narrator) saved(s *scene) {
	rest := "due in " + span(s.Delay)
	if s.every != 0 {
		rest = fmt.Sprintf("a schedule: every %s, %d times", span(s.every), ticks)
	}
	t.line(cell{"saved", plain}, s, rest)
}

func (t *narrator) inserted(s *scene) {
	t.line(cell{"inserted", plain}, s, "due in "+span(s.Delay)+", by another program with plain SQL")
}

func (t *narrator) cancelled(s *scene) { t.line(cell{"cancelled", yellow}, s, "it will not start") }

func (t *narrator) moved(s *scene) {
	t.line(cell{"rescheduled", yellow}, s, "now due in "+span(s.moved))
}

func (t *narrator) duplicate(s *scene) {
	t.line(cell{"refused", yellow}, s, "saved a second time, and its key is taken")
}

const (
	clocks    = "   %-12s  %-12s  "
	runsAfter = "%-8s  %-13s  %-10s  "
)

func (t *narrator) runs() {
	t.chapter("2. The tasks run. Times are local (%s), read by the service as each processor begins.",
		time.Now().Format("UTC-07:00"))
	t.say()
	t.say(words(bold, clocks+runsAfter, "DUE", "STARTED", "LATE", "TAG", "TASK"))
}

const clockLayout = "15:04:05.000"

func (t *narrator) start(e event, nth int) {
	s := sceneOf(e.Name)
	var note cell
	switch {
	case s.killed && nth > 1:
		note = cell{"rescued when its lease had ended", green}
	case s.killed:
		note.text = "takes " + span(reportTakes) + " of work"
	case e.Attempt > 1:
		note.text = fmt.Sprintf("attempt %d", e.Attempt)
	case s.moved != 0:
		note.text = "at its new time"
	case s.plainSQL:
		note.text = "the row from plain SQL"
	case s.every != 0:
		note.text = fmt.Sprintf("tick %d of the schedule", nth)
	}
	due, at := e.Due.Local(), e.At.Add(t.offset.middle()).Local()
	t.say(words(dim, clocks, due.Format(clockLayout), at.Format(clockLayout)),
		words(plain, runsAfter, lateness(t.offset.late(e.At, e.Due)), s.Tag, s.Name), note)
}

func (t *narrator) end(e event) {
	s := sceneOf(e.Name)
	indent := words(plain, clocks+"%-8s  ", "", "", "")
	switch {
	case e.Error != "":
		t.say(indent, words(red, "failed: %s; once more in %s", e.Error, span(mailBackoff)))
	case s.killed:
		t.say(indent, words(green, "%s is done, by the second process", s.Name))
	}
}

func (t *narrator) killing(pid int) {
	t.chapter("3. The service is killed (SIGKILL, process %d) in the middle of %s.", pid, "report.build")
	t.say(words(plain, "   Its lease is %s long and is no longer renewed; then the task belongs to whoever is alive.",
		span(time.Second)))
}
