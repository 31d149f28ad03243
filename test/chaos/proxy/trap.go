package proxy

import "slices"

// Loss is what a trap loses.
type Loss string

// What can be lost of a statement. The connection is reset in both cases.
const (
	Reply   Loss = "reply"   // the server has applied it, and the client is not told
	Request Loss = "request" // the server has never seen it
)

// Hit is a statement that was lost.
type Hit struct {
	Kind Kind
	IDs  []int64 // of tasks that it named, a few of them
}

// Trap waits for the n-th statement of a kind.
type Trap struct {
	Hits <-chan Hit // gets one, when it was lost

	kind  Kind
	loses Loss
	left  int // statements of the kind to let pass
	hits  chan Hit
}

// Set lets the n-th statement of the kind from now on meet the loss; 1 is the next one.
func (p *Proxy) Set(kind Kind, loses Loss, n int) *Trap {
	hits := make(chan Hit, 1)
	t := &Trap{Hits: hits, hits: hits, kind: kind, loses: loses, left: n - 1}
	p.set(t)
	return t
}

func (p *Proxy) set(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = append(p.traps, t)
}

// Unset takes a trap away that has not caught anything.
func (p *Proxy) Unset(t *Trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traps = slices.DeleteFunc(p.traps, func(other *Trap) bool { return other == t })
}

// spring counts a statement and returns the trap that it falls into, if any.
func (p *Proxy) spring(kind Kind) *Trap {
	if kind == Other {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.traps {
		if t.kind != kind {
			continue
		}
		if t.left > 0 {
			t.left--
			continue
		}
		p.traps = slices.Delete(p.traps, i, i+1)
		return t
	}
	return nil
}

func (t *Trap) hit(kind Kind, ids []int64) { t.hits <- Hit{kind, ids} } // once, for it has been taken away
