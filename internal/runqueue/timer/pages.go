package timer

const (
	pageBits = 11
	pageSize = 1 << pageBits // 64 KiB of entries, whole pages of every system
)

// page holds entries. A pointer into it is good until its entry moves, so none leaves this package.
type page = [pageSize]Entry

// pages is a growing array of entries in pieces. To grow one slice of a million would copy all of it while its owner
// holds a lock, and would keep both copies in memory meanwhile.
type pages struct {
	pages []*page
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
		p.pages = append(p.pages, new(page))
	}
	p.len++
	return p.len - 1
}

// cut keeps the first n entries and room for half a page more. So a length that keeps crossing a page's end costs
// nothing.
func (p *pages) cut(n int) {
	p.len = n
	keep := (n + pageSize/2 + pageSize - 1) >> pageBits
	for len(p.pages) > keep {
		last := len(p.pages) - 1
		p.pages[last] = nil
		p.pages = p.pages[:last]
	}
}
