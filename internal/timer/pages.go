package timer

const (
	pageBits = 10
	pageSize = 1 << pageBits // 32 KiB of entries
)

// pages is a growing array of entries in pieces, because growing one slice of a million would copy all of it while its owner
// holds a lock, and would keep both copies in memory meanwhile.
type pages struct {
	pages []*[pageSize]Entry
	len   int
}

func (p *pages) at(i int) *Entry { return &p.pages[i>>pageBits][i&(pageSize-1)] }

func (p *pages) swap(i, j int) {
	a, b := p.at(i), p.at(j)
	*a, *b = *b, *a
}

// grow makes room for one more entry and returns its place.
func (p *pages) grow() int {
	if p.len>>pageBits == len(p.pages) {
		p.pages = append(p.pages, new([pageSize]Entry))
	}
	p.len++
	return p.len - 1
}

// cut keeps the first n entries. One empty page stays, so that a length that moves to and fro over a page's end costs nothing.
func (p *pages) cut(n int) {
	p.len = n
	keep := (n+pageSize-1)>>pageBits + 1
	if keep < len(p.pages) {
		clear(p.pages[keep:])
		p.pages = p.pages[:keep]
	}
}
