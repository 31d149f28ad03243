package main

import (
	"fmt"
	"io"
	"time"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// teller writes what happens in plain words. It knows nothing that the play did not see.
type teller struct {
	w      io.Writer
	offset offset
}

// say writes one line. A reader who left does not end the play: its rows still have to be cleaned up.
func (t *teller) say(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format+"\n", args...) }

func (t *teller) introduce(dsn string, kind sqlstore.Kind) {
	t.say("A task is a row in a table. A service saves it, and runs it when it is due, to the millisecond.")
	if kind == sqlstore.SQLite {
		t.say("The table is in %s: nothing but this program is needed.", config.MaskDSN(dsn))
		return
	}
	t.say("The table is in %s; the demo's tasks are deleted at the end.", config.MaskDSN(dsn))
}

func (t *teller) started(pid int, first bool) {
	if first {
		t.say("\n1. A service starts (process %d) and saves tasks. Each line is a committed row.\n", pid)
		return
	}
	t.say("   The service is started again (process %d). It knows nothing but what the table says.\n", pid)
}

func (t *teller) line(verb string, s *scene, rest string) {
	t.say("   %-11s %-14s %-11s %s", verb, s.Tag, s.Name, rest)
}

func (t *teller) saved(s *scene) { t.line("saved", s, "due in "+span(s.Delay)) }

func (t *teller) inserted(s *scene) {
	t.line("inserted", s, "due in "+span(s.Delay)+", by another program with plain SQL")
}

func (t *teller) cancelled(s *scene) { t.line("cancelled", s, "it will not start") }

func (t *teller) moved(s *scene) { t.line("rescheduled", s, "now due in "+span(s.moved)) }

func (t *teller) duplicate(s *scene) {
	t.line("refused", s, "saved a second time, and its key is taken")
}

func (t *teller) runs() {
	t.say("\n2. The tasks run. Times are UTC; the service read its clock in the first line of each processor.\n")
	t.say("   %-14s %-14s %-9s %-14s %-11s %s", "DUE", "STARTED", "LATE", "TAG", "TASK", "")
}

const clockLayout = "15:04:05.000"

func (t *teller) start(e event, nth int) {
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

func (t *teller) end(e event) {
	s := sceneOf(e.Name)
	switch {
	case e.Error != "":
		t.say("   %39s failed: %s; once more in %s", "", e.Error, span(mailBackoff))
	case s.killed:
		t.say("   %39s %s is done, by the second process", "", s.Name)
	}
}

func (t *teller) killing(pid int) {
	t.say("\n3. The service is killed (SIGKILL, process %d) in the middle of %s.", pid, "report.build")
	t.say("   Its lease is %s long and is no longer renewed; then the task belongs to whoever is alive.", span(time.Second))
}
