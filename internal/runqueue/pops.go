package runqueue

import "time"

// Pops is told how many rows callers wait for, and knows which tags they have looked for.
type Pops struct{ queue *Queue }

// Want tells that waiting pops want n more rows of the tags, or fewer when n is negative.
func (p *Pops) Want(tags []string, n int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.queue.claims.pops.asked += n
	for _, name := range tags {
		tag := p.queue.tags.get(name)
		p.queue.claims.pops.account(tag, func(d *demand) { d.wanted += n })
		tag.looked = tag.looked && tag.pops.wanted > 0
		p.queue.tags.forget(tag)
	}
	p.queue.ClaimWake.Set()
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
