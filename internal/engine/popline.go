package engine

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
func (h *hands) want(tags []string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.pops.asked += n
	for _, tag := range tags {
		line := h.lines.line(tag)
		h.lines.want(line, n)
		line.looked = line.looked && line.pops.wanted > 0
		h.lines.forget(line)
	}
	h.claimWake.set()
}
