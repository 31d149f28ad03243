package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/report"
)

// bounds are how much one forecast may read.
type bounds struct {
	tags, schedules int
	rows            int64 // that a server counts
	ranges          int   // of an index that a server estimates
	capped          int   // rows that a database without estimates counts
}

// usual takes a connection for 0.2 s at most on each database that was measured.
var usual = bounds{tags: 500, schedules: 500, rows: 100_000, ranges: 2500, capped: 500_000}

const (
	rangesAtOnce  = 300                    // in one statement
	rowsAtOnce    = 20_000                 // the same
	cappedAtOnce  = 100_000                // the same, where they are counted up to a bound
	rowsLikeRange = 40                     // that cost as much to count as a range to estimate
	estimateTime  = 70 * time.Millisecond  // that counts leave
	workLimit     = 130 * time.Millisecond // after which nothing is begun
	ticksTime     = 200 * time.Millisecond // that ticks are counted for; only reads of skips hold a connection
)

// Source is what a forecast reads.
type Source interface {
	store.Forecaster
	Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error)
	Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error)
}

// Query says what to forecast.
type Query struct {
	Tag        string // "" means every tag
	Now        row.Time
	Span, Step time.Duration
}

// reader is a forecast in the making.
type reader struct {
	Source
	bounds
	grid    row.DueGrid
	began   time.Time
	loads   map[string]*load
	leftOut bool
}

// load is the forecast of one tag. The first cell is of what is overdue.
type load []report.DueTasks

func (r *reader) of(tag string) load {
	if r.loads[tag] == nil {
		l := make(load, r.grid.Steps+1)
		l.mark(report.Exact)
		r.loads[tag] = &l
	}
	return *r.loads[tag]
}

// mark sets the precision of all cells.
func (l load) mark(p report.Precision) {
	for i := range l {
		l[i].Precision = p
	}
}

// Read returns the forecast. It spends a bounded time on a connection.
func Read(ctx context.Context, from Source, q Query) (report.Forecast, error) {
	return read(ctx, from, q, usual)
}

func read(ctx context.Context, from Source, q Query, b bounds) (report.Forecast, error) {
	r := newReader(from, q, b)
	tags, err := r.tags(ctx, q.Tag)
	if err != nil {
		return report.Forecast{}, fmt.Errorf("read the tags: %w", err)
	}
	if err := r.readRows(ctx, tags); err != nil {
		return report.Forecast{}, err
	}
	if err := r.readTicks(ctx, q.Tag); err != nil {
		return report.Forecast{}, err
	}
	return r.forecast(), nil
}

func newReader(from Source, q Query, b bounds) *reader {
	step := row.Time(q.Step.Microseconds())
	return &reader{
		Source: from, bounds: b, began: time.Now(), loads: map[string]*load{},
		grid: row.DueGrid{Now: q.Now, Start: q.Now - q.Now%step, Step: q.Step, Steps: int(q.Span / q.Step)},
	}
}

// tags returns the tags with rows that are due before the end; of many tags the ones with the earliest due times. A due
// time that is no moment hides later ones, so such a tag is among them.
func (r *reader) tags(ctx context.Context, only string) (tags []string, err error) {
	oldest, err := r.Oldest(ctx, row.Pending)
	if err != nil {
		return nil, err
	}
	oldest = slices.DeleteFunc(oldest, func(c row.TagCount) bool {
		return c.Oldest >= r.grid.End() || only != "" && c.Tag != only
	})
	slices.SortFunc(oldest, func(a, b row.TagCount) int {
		return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), cmp.Compare(a.Tag, b.Tag))
	})
	r.leftOut = len(oldest) > r.bounds.tags
	for _, c := range oldest[:min(len(oldest), r.bounds.tags)] {
		tags = append(tags, c.Tag)
	}
	return tags, nil
}

// left returns how long there still is to work.
func (r *reader) left() time.Duration { return workLimit - time.Since(r.began) }

// forecast returns what was read, without tags whose cells are all empty.
func (r *reader) forecast() report.Forecast {
	f := report.Forecast{
		At: r.grid.Now.Std(), Start: r.grid.Start.Std(), Step: r.grid.Step, Steps: r.grid.Steps, LeftOut: r.leftOut,
		Tags: []report.TagForecast{},
	}
	for _, tag := range slices.Sorted(maps.Keys(r.loads)) {
		l := *r.loads[tag]
		nothing := report.DueTasks{Precision: report.Exact}
		if slices.ContainsFunc(l, func(d report.DueTasks) bool { return d != nothing }) {
			f.Tags = append(f.Tags, report.TagForecast{Tag: tag, Overdue: l[0], Due: l[1:]})
		}
	}
	return f
}
