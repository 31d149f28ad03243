package bench

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrInvalidOptions is returned by [Options.Check] and [Run], with what is wrong.
var ErrInvalidOptions = errors.New("invalid options of the benchmark")

// Options say what to measure, and on which database.
type Options struct {
	// DSN names the server whose user may create databases, or a SQLite file in whose folder there is room. The
	// database itself is neither read nor changed.
	DSN string

	// Quick takes about a minute: fewer measurements, and shorter ones.
	Quick bool

	// Full measures with a large table, once. It contradicts Quick.
	Full bool

	// Rows is how many rows the large tables have, at least 1. Default: 1,000,000; with Full 10,000,000.
	Rows int

	// Repeats is how many turns a measurement has, at least 1. The figures are medians. Default: Turns, but 1 for
	// measurements that take long.
	Repeats int

	// Turns is how many turns measurements have that do not take long, where Repeats is left out. Default: 3.
	Turns int

	// Only names measurements, or groups of them such as "raw", to be measured instead of what Quick or Full ask for.
	Only []string

	// Scale multiplies the durations and the numbers of tasks. Figures of a small scale mean nothing: it is for tests.
	// Default: 1.
	Scale float64

	// Viewers is how many dashboards are open, at least 1. Default: 100.
	Viewers int

	// Rate is how many tasks a second run beside what people read, at least 1. Default: 1,000.
	Rate int

	// Keep leaves the database with the table that people read. [Meta] names it.
	Keep bool

	// Database names a database that an earlier run has kept, or its file, to be read instead of a new one. It is
	// changed, and kept. Default: a new one is filled.
	Database string

	// Logger gets what schedulers that are measured log. Default: nothing is logged.
	Logger *slog.Logger

	// Progress is called a few times a second, never twice at once. May be nil.
	Progress func(Progress)

	// Child are the arguments with which this program calls [Child]. Measurements that need a process of their own fail
	// without.
	Child []string

	// ServiceProfile names a file for the CPU profile of a measured service. The last one wins. May be empty.
	ServiceProfile string

	// scratch is how the names of the databases begin. Default: with something drawn at random.
	scratch string
}

const (
	defaultRows    = 1_000_000
	fullRows       = 10_000_000
	defaultRepeats = 3
	defaultViewers = 100
	defaultRate    = 1000
)

// Check returns [ErrInvalidOptions] when values are out of range, contradict each other, or name unknown measurements.
func (o Options) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Quick && o.Full:
		return bad("a run is quick or full, not both")
	case o.Rows < 0:
		return bad("rows are %d, want at least 1", o.Rows)
	case o.Repeats < 0:
		return bad("repeats are %d, want at least 1", o.Repeats)
	case o.Turns < 0:
		return bad("turns are %d, want at least 1", o.Turns)
	case o.Scale < 0:
		return bad("the scale is %v, want more than 0", o.Scale)
	case o.Viewers < 0:
		return bad("viewers are %d, want at least 1", o.Viewers)
	case o.Rate < 0:
		return bad("the rate is %d, want at least 1", o.Rate)
	case o.Database != "" && !strings.HasPrefix(filepath.Base(o.Database), cmp.Or(o.scratch, scratchPrefix)):
		return bad("the database %q is none that a benchmark has kept: their names begin with %s", o.Database,
			scratchPrefix)
	case slices.Contains(o.Only, cold.name) && o.Database == "":
		return bad("cold reads want the database that an earlier run has kept")
	case slices.Contains(o.Only, cold.name) && o.Repeats > 1:
		return bad("reads are cold once after a restart of the server, so they have one turn")
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(registry, func(m measurement) bool { return m.called(name) }) {
			return bad("there is no measurement %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// withDefaults fills in what the caller left out.
func (o Options) withDefaults() Options {
	if o.Rows == 0 && o.Full {
		o.Rows = fullRows
	}
	o.Rows = cmp.Or(o.Rows, defaultRows)
	o.Repeats = cmp.Or(o.Repeats, o.Turns, defaultRepeats)
	o.Viewers, o.Rate = cmp.Or(o.Viewers, defaultViewers), cmp.Or(o.Rate, defaultRate)
	o.Scale = cmp.Or(o.Scale, 1)
	o.scratch = cmp.Or(o.scratch, scratchPrefix+strings.ToLower(rand.Text()[:10]))
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o
}

// workload is the size of a run.
type workload struct {
	warm  time.Duration // before what is measured by time
	span  time.Duration // of what is measured by time
	batch int           // rows that are claimed, or settled, in batches
	drain int           // tasks that are due at once
	rows  int           // of the large tables
	late  time.Duration // over which tasks of a rate are due
	now   time.Duration // in which tasks are saved that are due at once
	short time.Duration // in which tasks with short delays are saved
	idle  time.Duration // in which nothing happens
	quick bool
	scale float64
}

func (o Options) workload() workload {
	w := workload{warm: 500 * time.Millisecond, span: 2 * time.Second, batch: 50_000, drain: 50_000,
		late: 20 * time.Second, now: 8 * time.Second, short: time.Minute, idle: time.Minute}
	if o.Quick {
		w = workload{warm: 150 * time.Millisecond, span: 600 * time.Millisecond, batch: 20_000, drain: 20_000,
			late: 8 * time.Second, now: 2 * time.Second, short: 5 * time.Second,
			idle: 2 * time.Second}
	}
	w.quick, w.scale, w.rows = o.Quick, o.Scale, o.Rows
	w.warm, w.span = w.lasting(w.warm), w.lasting(w.span)
	w.late, w.now, w.short, w.idle = w.lasting(w.late), w.lasting(w.now), w.lasting(w.short), w.lasting(w.idle)
	w.batch, w.drain = w.count(w.batch), w.count(w.drain)
	return w
}

// lasting is d at the scale of the run.
func (w workload) lasting(d time.Duration) time.Duration { return time.Duration(float64(d) * w.scale) }

// count is n at the scale of the run.
func (w workload) count(n int) int { return max(1, int(float64(n)*w.scale)) }

const (
	million      = 1_000_000
	quickMillion = million / 10
)

// million is how many rows the tables have that show what a million of them costs: fewer where a run has less time or
// smaller tables.
func (w workload) million() int {
	if w.quick {
		return min(w.rows, quickMillion)
	}
	return min(w.rows, million)
}
