package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
)

// benchStep is the text beside the bar.
func benchStep(p bench.Progress) string {
	switch {
	case p.Name == "":
		return "done"
	case p.Turns > 1:
		return fmt.Sprintf("%s, turn %d of %d", p.Name, p.Turn, p.Turns)
	default:
		return p.Name
	}
}

// benchStolen is from how many percent of stolen CPU time on the report warns.
const benchStolen = 2

func (a *app) printBench(r *bench.Report) error {
	m := r.Meta
	if err := a.printf("%s %s; %d CPUs, %s/%s; %s run in %s\n", m.Server, m.Version, m.Machine.CPUs, m.Machine.OS,
		m.Machine.Arch, m.Run, span(time.Duration(m.Duration)*time.Millisecond)); err != nil {
		return err
	}
	for _, list := range []map[string]string{m.Settings, m.Forms} {
		var words []string
		for name, value := range sorted(list) {
			words = append(words, name+"="+value)
		}
		if len(words) == 0 {
			continue
		}
		if err := a.printf("%s\n", strings.Join(words, " ")); err != nil {
			return err
		}
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	t := a.newTable("FIGURE", "MEDIAN", "LOWEST", "HIGHEST", "OF").mayCut(4)
	for _, l := range r.Lines {
		var least, most string
		if len(l.Turns) > 1 {
			lowest, highest := l.Spread()
			least, most = benchNumber(l, lowest), benchNumber(l, highest)
		}
		t.row(l.Key, benchNumber(l, l.Value), least, most, l.About)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if lost := m.StolenInAll(); lost >= benchStolen {
		if err := a.printf("\nThe host of this virtual machine gave %.0f %% of its CPU time to others meanwhile: "+
			"rates are too low, and worst cases too bad. Ratios hold.\n", lost); err != nil {
			return err
		}
	}
	if m.Database != "" {
		if err := a.printf("\nThe database %s is kept. Drop it by hand.\n", m.Database); err != nil {
			return err
		}
	}
	for name, why := range sorted(m.LeftOut) {
		if err := a.printf("\nNot measured: %s: %s\n", name, why); err != nil {
			return err
		}
	}
	return nil
}

// benchNumber writes the significant digits of a figure.
func benchNumber(l bench.Line, value float64) string {
	if l.Digits() == 0 {
		return grouped(int(value))
	}
	return strconv.FormatFloat(value, 'f', l.Digits(), 64)
}
