package main

import (
	"fmt"
	"strings"
)

// narrator says in plain words what happens in the play.
type narrator struct{ *app }

// say prints one line, which ends by column 100. A failed write does not end the play.
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
	n.say(words(dim, clocks, e.Due.Local().Format(clockLayout), e.At.Local().Format(clockLayout)),
		words(plain, runsAfter, lateness(e.At.Sub(e.Due)), s.Tag, s.Name), note)
}

func (n *narrator) endedTask(e event) {
	indent := words(plain, clocks+"%-8s  ", "", "", "")
	switch {
	case e.Error != "":
		n.say(indent, words(red, "failed: %s; once more in %s", e.Error, span(mailBackoff)))
	case sceneOf(e.Name).killed:
		n.say(indent, words(green, "%s is done, by the second process", e.Name))
	}
}
