package runqueue

import "time"

// Pops knows how many rows callers wait for. A pop that waits for any of many tags wants one row of each, and takes
// one in all.
type Pops struct {
	queue *Queue
	asked int // rows; a pop of many tags counts once
	open  int // rows that are wanted and not reserved, over all tags
	met   int // rows that are wanted and reserved, likewise
}

// demand is what waiting pops want of one tag.
type demand struct {
	wanted   int  // rows, over all pops that wait
	reserved int  // rows that are being claimed for them
	turn     bool // the next row goes to a pop although a slot is free as well
}

func (d *demand) open() int { return max(d.wanted-d.reserved, 0) }

func (d *demand) met() int { return min(d.wanted, d.reserved) }

// Want tells that waiting pops want n more rows of the tags, or fewer when n is negative.
func (p *Pops) Want(tags []string, n int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.asked += n
	for _, name := range tags {
		tag := p.queue.tags.get(name)
		p.account(tag, func(d *demand) { d.wanted += n })
		tag.looked = tag.looked && tag.pops.wanted > 0
		p.queue.tags.forget(tag)
	}
	p.queue.ClaimWake.Set()
}

// left returns how many more rows may be claimed for pops.
func (p *Pops) left() int { return min(p.open, max(p.asked-p.met, 0)) }

// takes returns how many more rows of the tag may be claimed for pops.
func (p *Pops) takes(tag *tagQueue) int { return min(tag.pops.open(), p.left()) }

// reserve changes how many rows are being claimed for pops by n.
func (p *Pops) reserve(tag *tagQueue, n int) {
	p.account(tag, func(d *demand) { d.reserved += n })
}

// account keeps the sums over all tags in step.
func (p *Pops) account(tag *tagQueue, change func(*demand)) {
	open, met := tag.pops.open(), tag.pops.met()
	change(&tag.pops)
	p.open += tag.pops.open() - open
	p.met += tag.pops.met() - met
}

// claimSoon is how long a row that is ready waits for its claim, as a rule.
const claimSoon = 5 * time.Millisecond

// LookIn returns when a pop that begins to wait for the tags asks the table. It need not while others that wait have
// done so. It asks at once when nothing is ready here, and otherwise if that is not claimed for it.
func (p *Pops) LookIn(tags []string) (wait time.Duration, asks bool) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for _, name := range tags {
		tag, known := p.queue.tags.byName[name]
		if !known || !tag.looked {
			asks = true
		}
		if known && (tag.now.Len() > 0 || len(tag.backlog) > 0) {
			wait = claimSoon
		}
	}
	return wait, asks
}

// Unlooked returns the tags that no pop has looked for since the first one began to wait, and how many rows of them are
// wanted.
func (p *Pops) Unlooked(tags []string) (unlooked []string, wanted int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for _, name := range tags {
		if tag, known := p.queue.tags.byName[name]; known && tag.pops.wanted > 0 && !tag.looked {
			unlooked = append(unlooked, name)
			wanted += tag.pops.wanted
		}
	}
	return unlooked, wanted
}

// Looked notes that all due rows of the tags have been found. Until no pop waits any more, later ones are found as they
// are for processors.
func (p *Pops) Looked(tags []string) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for _, name := range tags {
		if tag, known := p.queue.tags.byName[name]; known && tag.pops.wanted > 0 {
			tag.looked = true
		}
	}
}
