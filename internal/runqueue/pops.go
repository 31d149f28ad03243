package runqueue

import "time"

// popDemand is what waiting pops want of one tag.
type popDemand struct {
	wanted   int  // rows, over all pops that wait
	promised int  // rows that are being claimed for them
	turn     bool // the next row goes to a pop where a worker is free as well
}

// open is how many rows of the tag more pops want.
func (d *popDemand) open() int { return max(d.wanted-d.promised, 0) }

// met is how many of those that pops want are being claimed.
func (d *popDemand) met() int { return min(d.wanted, d.promised) }

// popDemands is what waiting pops want in all.
type popDemands struct {
	asked int // rows, those of a pop of many tags counted once
	open  int // over all tags
	met   int // likewise
}

// left is how many rows more may be claimed for pops. One that waits for any of many tags wants one row of each, and takes one in all.
func (d *popDemands) left() int { return min(d.open, max(d.asked-d.met, 0)) }

// popsTake is how many rows more of the tag may be claimed for pops.
func (l *lines) popsTake(line *tagLine) int { return min(line.pops.open(), l.pops.left()) }

// want changes what the pops of the tag want by n rows.
func (l *lines) want(line *tagLine, n int) { l.account(line, func(d *popDemand) { d.wanted += n }) }

// promise changes what they were promised by n rows.
func (l *lines) promise(line *tagLine, n int) {
	l.account(line, func(d *popDemand) { d.promised += n })
}

// account keeps the sum over all tags in step.
func (l *lines) account(line *tagLine, change func(*popDemand)) {
	open, met := line.pops.open(), line.pops.met()
	change(&line.pops)
	l.pops.open += line.pops.open() - open
	l.pops.met += line.pops.met() - met
}

// want tells the lines how many more rows of the tags waiting pops want, or fewer when n is negative.
func (h *Queue) Want(tags []string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.pops.asked += n
	for _, tag := range tags {
		line := h.lines.line(tag)
		h.lines.want(line, n)
		line.looked = line.looked && line.pops.wanted > 0
		h.lines.forget(line)
	}
	h.ClaimWake.Set()
}

// lookIn returns when a pop that has begun to wait for the tags asks the table. It never does while pops that wait
// already have done so. It does at once when nothing waits here, and otherwise if that is not claimed for it.
func (h *Queue) LookIn(tags []string) (wait time.Duration, asks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tag := range tags {
		line, known := h.lines.byTag[tag]
		if !known || !line.looked {
			asks = true
		}
		if known && (line.now.Len() > 0 || len(line.backlog) > 0) {
			wait = claimSoon
		}
	}
	return wait, asks
}

// unlooked returns those of the tags that no pop has looked for since the first one began to wait, and how many rows are
// wanted of them.
func (h *Queue) Unlooked(tags []string) (unlooked []string, wanted int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tag := range tags {
		if line, known := h.lines.byTag[tag]; known && line.pops.wanted > 0 && !line.looked {
			unlooked = append(unlooked, tag)
			wanted += line.pops.wanted
		}
	}
	return unlooked, wanted
}

// looked notes that all rows of the tags which are due have been found. What falls due from now on is found as it is for
// workers, until no pop waits any more.
func (h *Queue) Looked(tags []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tag := range tags {
		if line, known := h.lines.byTag[tag]; known && line.pops.wanted > 0 {
			line.looked = true
		}
	}
}

// claimSoon is until when a row that waits here is claimed, as a rule.
const claimSoon = 5 * time.Millisecond
