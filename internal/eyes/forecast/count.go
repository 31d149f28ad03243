package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// readRows reads the rows of the tags. Where the server tells how many there are, tags are counted whose rows cost less
// than the estimates of all their cells, and then others as far as time allows.
func (r *reader) readRows(ctx context.Context, tags []string) error {
	sizes, known, err := r.sizes(ctx, tags)
	switch {
	case err != nil:
		return err
	case !known:
		return r.countCapped(ctx, tags)
	}
	small, large := affordable(tags, r.rows, sizes.all)
	sparse := func(tag string) bool { return sizes.all(tag) <= rowsLikeRange*int64(r.grid.Steps+1) }
	dense := slices.IndexFunc(small, func(tag string) bool { return !sparse(tag) })
	if dense < 0 {
		dense = len(small)
	}
	left, err := r.countParts(ctx, small[:dense], sizes, estimateTime)
	if err != nil {
		return err
	}
	if err := r.estimate(ctx, slices.Concat(left, small[dense:], large), sizes); err != nil {
		return err
	}
	_, err = r.countParts(ctx, small[dense:], sizes, estimateTime/2)
	return err
}

// countParts counts tags, the smallest first, until only the time to keep is left. It returns the others.
func (r *reader) countParts(
	ctx context.Context, tags []string, of sizes, keep time.Duration,
) (left []string, err error) {
	for len(tags) > 0 && r.left() > keep {
		part, rest := affordable(tags, rowsAtOnce, of.all)
		if len(part) == 0 {
			part, rest = tags[:1], tags[1:]
		}
		counted, err := r.count(ctx, part, r.grid.Steps)
		if err != nil || !counted {
			return tags, err
		}
		tags = rest
	}
	return tags, nil
}

// count counts the overdue rows of the tags and the rows of the first steps. It returns false when that takes too long.
func (r *reader) count(ctx context.Context, tags []string, steps int) (complete bool, err error) {
	if r.left() <= 0 {
		return false, nil
	}
	g := r.grid
	g.Tags, g.Steps = tags, steps
	counts, complete, err := r.CountDue(ctx, g, 2*int(r.rows), r.left())
	if err != nil || !complete {
		return false, countFailed(err)
	}
	for _, tag := range tags {
		l := r.of(tag)[:steps+1]
		clear(l)
		l.mark(report.Exact)
	}
	r.take(counts)
	return true, nil
}

func countFailed(err error) error {
	if err != nil {
		return fmt.Errorf("count what falls due: %w", err)
	}
	return nil
}

// take enters counts, which are exact unless a cell has more.
func (r *reader) take(counts []row.DueCount) {
	for _, c := range counts {
		cell := &r.of(c.Tag)[c.Cell-row.OverdueCell]
		*cell = report.DueTasks{Tasks: c.Rows, Precision: report.Exact}
		if c.More {
			cell.Precision = report.AtLeast
		}
	}
}

// countCapped counts up to a bound of each cell: what is overdue, then every step, and then, tag by tag, the steps that
// have more. Large cells get what small ones leave of the bound.
func (r *reader) countCapped(ctx context.Context, tags []string) error {
	for _, tag := range tags {
		r.of(tag).mark(report.AtLeast)
	}
	if len(tags) == 0 {
		return nil
	}
	left := r.capped / 4
	more, err := r.countCells(ctx, tags, []int{row.OverdueCell}, left/len(tags), &left)
	if err != nil {
		return err
	}
	if err := r.countMore(ctx, tags, more, &left); err != nil {
		return err
	}
	left += r.capped - r.capped/4
	steps := make([]int, r.grid.Steps)
	for i := range steps {
		steps[i] = i
	}
	clear(more)
	for rest := tags; len(rest) > 0; {
		most := left / 2 / (len(rest) * len(steps))
		n := min(max(cappedAtOnce/(len(steps)*(most+1)), 1), len(rest))
		capped, err := r.countCells(ctx, rest[:n], steps, most, &left)
		if err != nil {
			return err
		}
		maps.Copy(more, capped)
		rest = rest[n:]
	}
	return r.countMore(ctx, tags, more, &left)
}

// countMore counts the cells that have more rows than were counted, in rounds.
func (r *reader) countMore(ctx context.Context, tags []string, more map[string][]int, left *int) error {
	for most := 0; ; {
		cells := 0
		for _, of := range more {
			cells += len(of)
		}
		if cells == 0 || *left/cells < 2*most+1 { // it would hardly tell more
			return nil
		}
		most = *left / cells
		for rest := tags; len(rest) > 0; {
			n := alike(rest, more, cappedAtOnce/(most+1))
			capped, err := r.countCells(ctx, rest[:n], more[rest[0]], most, left)
			if err != nil {
				return err
			}
			for _, tag := range rest[:n] {
				more[tag] = capped[tag]
			}
			rest = rest[n:]
		}
	}
}

// alike returns how many of the first tags have more rows in the same cells. Together they have at most so many cells.
func alike(tags []string, more map[string][]int, cells int) int {
	n := 1
	for n < len(tags) && (n+1)*len(more[tags[0]]) <= cells && slices.Equal(more[tags[n]], more[tags[0]]) {
		n++
	}
	return n
}

// countCells counts up to a bound of each of the cells, and takes what it has read off what is left. It returns the
// cells that have more. It stops when the time is over.
func (r *reader) countCells(
	ctx context.Context, tags []string, cells []int, most int, left *int,
) (more map[string][]int, err error) {
	more = map[string][]int{}
	for part := range slices.Chunk(cells, max(cappedAtOnce/(most+1), 1)) {
		if r.left() <= 0 {
			break
		}
		g := r.grid
		g.Tags, g.Only = tags, part
		counts, complete, err := r.CountDue(ctx, g, most, r.left())
		if err != nil || !complete {
			return more, countFailed(err)
		}
		for _, tag := range tags {
			for _, cell := range part {
				r.of(tag)[cell-row.OverdueCell] = report.DueTasks{Precision: report.Exact}
			}
		}
		for _, c := range counts {
			*left -= int(c.Rows)
			if c.More {
				more[c.Tag] = append(more[c.Tag], c.Cell)
			}
		}
		r.take(counts)
	}
	return more, nil
}
