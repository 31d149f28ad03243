package timer

import "github.com/delaytask/delaytask/internal/timer/offheap"

const (
	pageBits = 11
	pageSize = 1 << pageBits // 64 KiB of entries, whole pages of every system
)

// page holds entries. A pointer into it is good until the page is cut off, so none leaves this package.
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
		p.pages = append(p.pages, newPage(len(p.pages)))
	}
	p.len++
	return p.len - 1
}

// newPage makes the page with the number. The first is an ordinary one, so that a heap of few timers, such as a test's,
// may be forgotten without being cleared.
func newPage(number int) *page {
	if number == 0 {
		return new(page)
	}
	return (*page)(offheap.Make[Entry](pageSize))
}

// cut keeps the first n entries and room for half a page more. So a length that keeps crossing a page's end costs
// nothing.
func (p *pages) cut(n int) {
	p.len = n
	p.keep((n + pageSize/2 + pageSize - 1) >> pageBits)
}

// keep frees the pages from the nth on.
func (p *pages) keep(n int) {
	for len(p.pages) > n {
		last := len(p.pages) - 1
		offheap.Free(p.pages[last][:])
		p.pages[last] = nil
		p.pages = p.pages[:last]
	}
}
