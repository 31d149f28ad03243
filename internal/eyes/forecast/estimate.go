package forecast

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// size is about how many rows a tag has.
type size struct{ overdue, later int64 }

// sizes has a size for each tag.
type sizes map[string]size

func (s sizes) all(tag string) int64     { return s[tag].overdue + s[tag].later }
func (s sizes) overdue(tag string) int64 { return s[tag].overdue }

// sizes estimates each tag as a whole. It returns false when the database cannot.
func (r *reader) sizes(ctx context.Context, tags []string) (sizes, bool, error) {
	g := r.grid
	g.Start, g.Step, g.Steps = g.Now, g.End().Sub(g.Now), 1
	found := make(sizes, len(tags))
	for part := range slices.Chunk(tags, rangesAtOnce/2) {
		g.Tags = part
		counts, known, err := r.EstimateDue(ctx, g)
		if err != nil || !known {
			return nil, false, estimateFailed(err)
		}
		for _, c := range counts {
			s := found[c.Tag]
			if c.Cell == row.OverdueCell {
				s.overdue = c.Rows
			} else {
				s.later = c.Rows
			}
			found[c.Tag] = s
		}
	}
	return found, true, nil
}

func estimateFailed(err error) error {
	if err != nil {
		return fmt.Errorf("estimate what falls due: %w", err)
	}
	return nil
}

// affordable divides the tags: the smallest ones, up to most rows together, and the rest.
func affordable(tags []string, most int64, rows func(tag string) int64) (small, large []string) {
	tags = slices.SortedStableFunc(slices.Values(tags), func(a, b string) int { return cmp.Compare(rows(a), rows(b)) })
	for i, tag := range tags {
		if most -= rows(tag); most < 0 {
			return tags[:i], tags[i:]
		}
	}
	return tags, nil
}

// estimate fills in tags that are too large to count. The largest ones have a range for each step, where not all can.
// What is overdue is counted where it is not too much: an estimate cannot tell one row from none.
func (r *reader) estimate(ctx context.Context, tags []string, of sizes) error {
	tags, _ = affordable(tags, math.MaxInt64, of.all)
	slices.Reverse(tags)
	for _, tag := range tags {
		l := r.of(tag)
		l.mark(report.About)
		l[0].Tasks = of.overdue(tag)
	}
	few, _ := affordable(tags, r.rows/4, of.overdue)
	if len(few) > 0 {
		if _, err := r.count(ctx, few, 0); err != nil {
			return err
		}
	}
	fine, steps := resolution(len(tags), r.grid.Steps, r.ranges)
	if err := r.estimateIn(ctx, tags[:fine], r.grid.Steps, of); err != nil {
		return err
	}
	return r.estimateIn(ctx, tags[fine:], steps, of)
}

// resolution returns how many tags have a range for each step, and how many ranges the others have.
func resolution(tags, steps, ranges int) (fine, fewer int) {
	if tags*(steps+1) <= ranges {
		return tags, steps
	}
	fewer = 1
	for n := 2; n < steps; n++ {
		if steps%n == 0 && tags*(n+1) <= ranges/2 {
			fewer = n
		}
	}
	return max(ranges-tags*(fewer+1), 0) / (steps - fewer), fewer
}

// estimateIn estimates tags step by step. Tags that there is no time for are spread evenly.
func (r *reader) estimateIn(ctx context.Context, tags []string, steps int, of sizes) error {
	for part := range slices.Chunk(tags, max(rangesAtOnce/(steps+1), 1)) {
		g := r.grid
		g.Tags, g.Steps = part, steps
		counts, known := of.counts(part), false
		if r.left() > 0 {
			g.Step = r.grid.Step * time.Duration(r.grid.Steps/steps)
			finer, ok, err := r.EstimateDue(ctx, g)
			if err != nil {
				return estimateFailed(err)
			}
			if known = ok; known {
				counts = finer
			}
		}
		if !known {
			g.Steps = 1
		}
		r.takeEstimates(g, counts)
	}
	return nil
}

// counts returns what is not overdue as the counts of a grid of one step.
func (s sizes) counts(tags []string) (counts []row.DueCount) {
	for _, tag := range tags {
		counts = append(counts, row.DueCount{Tag: tag, Rows: s[tag].later})
	}
	return counts
}

// takeEstimates enters the steps of a grid, which are as long as several of the reader's.
func (r *reader) takeEstimates(g row.DueGrid, counts []row.DueCount) {
	cells := r.grid.Cells()
	n := r.grid.Steps / g.Steps
	for _, c := range counts {
		if c.Cell == row.OverdueCell {
			continue
		}
		l, first := r.of(c.Tag), 1+c.Cell*n
		for i, rows := range spread(c.Rows, cells[first:first+n]) {
			l[first+i].Tasks = rows
		}
	}
}

// spread divides rows over cells by their length. The parts add up.
func spread(rows int64, cells []row.DueCell) []int64 {
	parts := make([]int64, len(cells))
	begin, end := cells[0].From, cells[len(cells)-1].To
	given := int64(0)
	for i, c := range cells {
		until := int64(float64(rows) * float64(c.To-begin) / float64(end-begin))
		parts[i] = until - given
		given = until
	}
	return parts
}
