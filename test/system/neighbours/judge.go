package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// The floor, for the tags that a neighbour does not cover.
const (
	onset       = 2 * time.Second         // in which a process may learn of a lock
	worstOnset  = 1500 * time.Millisecond // the longest that anything may take meanwhile
	slower      = 2                       // times the quiet p99 may p99 be afterwards
	leastShare  = 0.9                     // of the quiet throughput
	mostCovered = 1                       // other tags, of a neighbour that names one
	// grain is the jitter of a machine without other work: a quiet p99 below it counts as it.
	grain = 5 * time.Millisecond
	// commits is how many of the server's own commits a save, a start or a completion may wait for. So a machine with
	// other work, or a slow disk, is not counted against the process.
	commits = 2
)

type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return !t.Before(s.from) && t.Before(s.to) }

// figures are in milliseconds.
type figures struct {
	Worst  float64 `json:"worst_ms"` // of the first 2 s
	P99    float64 `json:"p99_ms"`   // after them
	Quiet  float64 `json:"quiet_p99_ms"`
	Share  float64 `json:"share"` // of the quiet throughput
	Failed int     `json:"failed"`
}

type result struct {
	Server      string   `json:"server"`
	Neighbour   string   `json:"neighbour"`
	Covered     []string `json:"covered"` // tags beside the named one that wait at the locked places
	Saves       figures  `json:"saves"`
	Starts      figures  `json:"starts"`
	Completions figures  `json:"completions"`
	Pulse       float64  `json:"pulse_p99_ms"` // of a commit to another table meanwhile
	Again       int      `json:"again"`        // starts of tasks whose lease was lost
	Refused     int      `json:"refused"`      // times the database has refused the neighbour
	Lost        int      `json:"lost"`         // tasks, of all tags, that are not complete, and none was for a minute
	Broken      []string `json:"broken"`

	judged int // tags
}

// judge compares what the tags that are not covered do during a neighbour with the quiet before it. A tag is covered
// when the probe of its places waits, and its own figures break the floor.
func (r *ledger) judge(n neighbour, quiet, held span, blocked [tags]bool) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := result{Neighbour: n.name, Pulse: figuresOf(r.pulses, []int{0}, quiet, held).P99}
	var judged []int
	for tag := range tags {
		if n.tag && tagName(tag) == named {
			continue
		}
		own := result{Pulse: res.Pulse}
		own.fill(r, []int{tag}, quiet, held)
		if blocked[tag] && own.slow() != nil {
			res.Covered = append(res.Covered, tagName(tag))
			continue
		}
		judged = append(judged, tag)
	}
	res.judged = len(judged)
	res.fill(r, judged, quiet, held)
	return res
}

func (r *result) fill(from *ledger, judged []int, quiet, held span) {
	r.Saves = figuresOf(from.saved, judged, quiet, held)
	r.Starts = figuresOf(from.begun, judged, quiet, held)
	r.Completions = figuresOf(from.finished, judged, quiet, held)
	for _, tag := range judged {
		r.Again += from.again[tag]
	}
}

func figuresOf(samples []sample, judged []int, quiet, held span) (f figures) {
	var before, first, after []time.Duration
	var doneBefore, doneDuring float64
	for _, s := range samples {
		if !slices.Contains(judged, s.tag) {
			continue
		}
		took := max(0, s.done.Sub(s.at))
		switch {
		case quiet.has(s.at):
			before = append(before, took)
		case span{held.from, held.from.Add(onset)}.has(s.at):
			first = append(first, took)
		case held.has(s.at):
			after = append(after, took)
		}
		switch {
		case s.failed:
			if held.has(s.at) {
				f.Failed++
			}
		case quiet.has(s.done):
			doneBefore++
		case held.has(s.done):
			doneDuring++
		}
	}
	f.Worst = ms(lateness.Percentile(first, 100))
	f.P99, f.Quiet = ms(lateness.Percentile(after, 99)), ms(lateness.Percentile(before, 99))
	if doneBefore > 0 {
		f.Share = doneDuring / doneBefore * float64(quiet.to.Sub(quiet.from)) / float64(held.to.Sub(held.from))
	}
	return f
}

func ms(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

// slow returns what breaks the floor of the judged tags.
func (r *result) slow() (broken []string) {
	for _, of := range []struct {
		name string
		figures
	}{{"saves", r.Saves}, {"starts", r.Starts}, {"completions", r.Completions}} {
		if of.Worst > ms(worstOnset) {
			broken = append(broken, of.name+": worst")
		}
		if of.P99 > slower*max(of.Quiet, ms(grain), commits*r.Pulse) {
			broken = append(broken, of.name+": p99")
		}
		if of.Share < leastShare {
			broken = append(broken, of.name+": throughput")
		}
	}
	return broken
}

func (r *result) breaks(n neighbour) (broken []string) {
	if r.judged > 0 {
		broken = r.slow()
	}
	if n.tag && len(r.Covered) > mostCovered {
		broken = append(broken, "covered")
	}
	if r.Lost > 0 {
		broken = append(broken, "lost")
	}
	return broken
}

const header = `| server | neighbour | covered | saves | starts | completions | pulse | again | refused | lost | floor |
|---|---|---|---|---|---|---|---|---|---|---|
`

// line shows of each measure: worst of the first 2 s, p99 after (quiet p99), throughput.
func (r *result) line() string {
	cells := []string{r.Server, r.Neighbour, fmt.Sprint(len(r.Covered))}
	for _, f := range []figures{r.Saves, r.Starts, r.Completions} {
		cell := fmt.Sprintf("%.0f, %.1f (%.1f), %.2f", f.Worst, f.P99, f.Quiet, f.Share)
		if f.Failed > 0 {
			cell += fmt.Sprintf(", %d failed", f.Failed)
		}
		if r.judged == 0 {
			cell = "–"
		}
		cells = append(cells, cell)
	}
	kept := "kept"
	if len(r.Broken) > 0 {
		kept = "**broken**: " + strings.Join(r.Broken, ", ")
	}
	counts := []string{fmt.Sprintf("%.1f", r.Pulse), fmt.Sprint(r.Again), fmt.Sprint(r.Refused), fmt.Sprint(r.Lost)}
	cells = append(append(cells, counts...), kept)
	return "| " + strings.Join(cells, " | ") + " |"
}
