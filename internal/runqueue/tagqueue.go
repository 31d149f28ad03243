package runqueue

import "time"

// Tags are free text, and a caller may make up new ones as he goes. So what is done for each claim walks through the tags at work
// alone, however many there are, and a tag that is neither served nor at work is forgotten.

// tagLine is what waits of one tag, and what runs of it.
type tagLine struct {
	tag     string
	number  uint32 // that the heap's entries carry
	armed   int    // entries of the heap
	atWork  bool   // it is among those that are walked through
	open    bool   // served here and not paused
	limit   int    // worker slots that the tag may occupy; 0 while it is closed
	busy    int    // rows that are claimed for a worker, or being claimed
	held    int    // slots that count as the tag's
	beyond  int    // rows that may be claimed beyond the slots now
	flow    flow
	slots   int // the limit, also after the tag was closed
	running int // slots in which a row runs
	// Rows that were claimed and wait for a slot: those that are due now, and the backlog.
	ready, readyLate queue
	ahead            int   // slots, or places of pops, that are held by rows which are not due yet
	early            queue // not nearly due
	now              queue
	arrived          []*Item   // those of now in the order in which they came, about that of their due times; some have left
	backlog          []*Item   // oldest first
	awaited          time.Time // when a scan last waited for room in the backlog, with rows that are older
	pops             popDemand
	looked           bool // since the first of the pops that wait began to
}

func newTagLine(tag string, number uint32) *tagLine {
	return &tagLine{
		tag: tag, number: number, early: queue{before: byDue}, now: queue{before: byPriority}, ready: queue{before: byPriority},
		readyLate: queue{before: byDue},
	}
}

// atRest reports whether nothing of the tag waits, runs, or came to an end lately.
func (line *tagLine) atRest() bool {
	return line.busy == 0 && line.running == 0 && line.pops.promised == 0 && line.flow.still() &&
		line.early.Len() == 0 && line.now.Len() == 0 && len(line.arrived) == 0 && len(line.backlog) == 0 &&
		line.ready.Len() == 0 && line.readyLate.Len() == 0
}

func (line *tagLine) clear() {
	line.early.clear()
	line.now.clear()
	line.arrived, line.backlog = nil, nil
}

// tagLines knows the lines of the tags by their names and by their numbers.
type tagLines struct {
	byTag    map[string]*tagLine
	byNumber []*tagLine // nil where a number is free
	free     []uint32   // numbers of tags that were forgotten
	working  []*tagLine // those at work
	next     int        // of working that the backlog's round begins with
}

// line returns that of the tag. Whoever leaves it without anything to do lets it be forgotten.
func (t *tagLines) line(tag string) *tagLine {
	line, known := t.byTag[tag]
	if known {
		return line
	}
	if n := len(t.free); n > 0 {
		line = newTagLine(tag, t.free[n-1])
		t.free = t.free[:n-1]
		t.byNumber[line.number] = line
	} else {
		line = newTagLine(tag, uint32(len(t.byNumber)))
		t.byNumber = append(t.byNumber, line)
	}
	t.byTag[tag] = line
	return line
}

// stir puts a line to work.
func (t *tagLines) stir(line *tagLine) {
	if !line.atWork {
		line.atWork = true
		t.working = append(t.working, line)
	}
}

// rest lets go of the lines that have come to rest. The backlog's round goes on where it was.
func (t *tagLines) rest() {
	kept, next := t.working[:0], t.next
	for i, line := range t.working {
		if !line.atRest() {
			kept = append(kept, line)
			continue
		}
		line.atWork = false
		if i < t.next {
			next--
		}
		t.forget(line)
	}
	clear(t.working[len(kept):])
	t.working, t.next = kept, next
}

// inTurn returns the line whose turn it is in the backlog's round.
func (t *tagLines) inTurn() *tagLine {
	if t.next >= len(t.working) {
		t.next = 0
	}
	t.next++
	return t.working[t.next-1]
}

// forget forgets a line that is closed and has nothing to do, and that no timer and no pop wants.
func (t *tagLines) forget(line *tagLine) {
	if line.open || line.atWork || line.armed > 0 || line.pops.wanted > 0 || t.byTag[line.tag] != line {
		return
	}
	delete(t.byTag, line.tag)
	t.byNumber[line.number] = nil
	t.free = append(t.free, line.number)
}
