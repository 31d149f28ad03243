package engine

// popDemand is what waiting pops want of one tag.
type popDemand struct {
	wanted   int  // rows, over all pops that wait
	promised int  // rows that are being claimed for them
	turn     bool // the next row goes to a pop where a worker is free as well
}

// open is how many rows more may be claimed for pops.
func (d *popDemand) open() int { return max(d.wanted-d.promised, 0) }

// want changes what the pops of the tag want by n rows.
func (l *lines) want(line *tagLine, n int) { l.account(line, func(d *popDemand) { d.wanted += n }) }

// promise changes what they were promised by n rows.
func (l *lines) promise(line *tagLine, n int) {
	l.account(line, func(d *popDemand) { d.promised += n })
}

// account keeps the sum over all tags in step.
func (l *lines) account(line *tagLine, change func(*popDemand)) {
	l.wanted -= line.pops.open()
	change(&line.pops)
	l.wanted += line.pops.open()
}

// want tells the lines how many more rows of the tags waiting pops want, or fewer when n is negative.
func (h *hands) want(tags []string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tag := range tags {
		line := h.lines.line(tag)
		h.lines.want(line, n)
		h.lines.forget(line)
	}
	signal(h.claimWake)
}
