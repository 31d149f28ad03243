package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/sim"
)

// Line is a part of a campaign: seeds that follow each other.
type Line struct {
	Began   time.Time `json:"began"`
	Commit  string    `json:"commit"`
	Changed bool      `json:"changed,omitempty"` // the tree had changes that are not in the commit
	Code    string    `json:"code"`              // of the engine: parts are summed while it stays the same
	First   uint64    `json:"first"`             // seed
	sim.Totals
}

func (l *Line) span() span { return span{l.First, l.First + uint64(l.Seeds)} }

// span is a range of seeds, without its end.
type span struct{ from, to uint64 }

func (s span) meets(o span) bool { return s.from < o.to && o.from < s.to }

// counting are the spans of the lines that count: of two that share a seed the first.
func counting(lines []Line) (spans []span) {
	for i := range lines {
		if s := lines[i].span(); !slices.ContainsFunc(spans, s.meets) {
			spans = append(spans, s)
		}
	}
	return spans
}

// covered are the seeds that count, in order, in as few spans as they fill.
func covered(lines []Line) (all []span) {
	spans := counting(lines)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.from == all[last].to {
			all[last].to = s.to
		} else {
			all = append(all, s)
		}
	}
	return all
}

// missing are the seeds of a span that do not count yet for the code, in parts.
func missing(lines []Line, code string, want span, part uint64) (parts []span) {
	cut := func(s span) {
		for from := s.from; from < s.to; from += part {
			parts = append(parts, span{from, min(from+part, s.to)})
		}
	}
	for _, s := range covered(of(lines, code)) {
		cut(span{want.from, min(s.from, want.to)})
		want.from = max(want.from, s.to)
	}
	cut(want)
	return parts
}

// of are the lines of a code.
func of(lines []Line, code string) []Line {
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Code != code })
}

// sum adds lines of one code up. The violations of lines that do not count are added too.
func sum(lines []Line) (all sim.Totals) {
	spans := counting(lines)
	for i := range lines {
		if s := lines[i].span(); len(spans) > 0 && spans[0] == s {
			spans = spans[1:]
			all.Add(lines[i].Totals)
		} else {
			all.AddViolations(lines[i].Totals)
		}
	}
	slices.Sort(all.Failed)
	all.Failed = slices.Compact(all.Failed)
	return all
}
