package rollup

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// How long rows are kept.
const (
	KeepMinutes = 6 * time.Hour
	KeepHours   = 30 * 24 * time.Hour // marks as well
	// WrittenAfter is how long after the end of a minute all processes have written it.
	WrittenAfter = 12 * time.Second
)

const (
	// spread keeps processes from writing in the same moment.
	spread = 10 * time.Second
	// callTime bounds a statement, which takes milliseconds. Other chores must not wait for one that hangs.
	callTime = 2 * time.Second
	// batch is how many rows a statement writes: all of a minute, and of the hour that it is in.
	batch = 2*(MaxTags+2) + 96
	// mostWaiting bounds what is kept while the database does not take it: about an hour of all tags.
	mostWaiting = 60 * batch
	// trimAtOnce is how many rows a process deletes in a minute at most. It writes fewer.
	trimAtOnce = 1000
)

// Config is what a [Writer] works with.
type Config struct {
	Counts *Counts
	Store  store.Rollups
	Life   *lifecycle.Lifecycle
	Now    func() (row.Time, bool) // the database's time, false while it is not known
	Node   string                  // the token of the process
}

// Writer writes what a process has counted, with one statement once a minute. A row holds all that the process has
// counted of the minute or hour, so a statement that is repeated changes nothing.
type Writer struct {
	Config

	turning chan struct{} // holds an element while a minute ends or is written, which guards what follows
	minute  row.Time      // that is being counted; zero before the first
	epoch   int           // grows when the database's clock goes back: the rows of that time are written already
	hours   map[string]*sum

	mu      sync.Mutex // guards what follows
	waiting map[key]row.Rollup
}

// key is the primary key of a rollup.
type key struct {
	span  row.RollupSpan
	begin row.Time
	tag   string
	node  string
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.span, other.span), cmp.Compare(k.begin, other.begin), cmp.Compare(k.tag, other.tag),
		cmp.Compare(k.node, other.node))
}

// NewWriter returns a writer that has nothing to write.
func NewWriter(cfg Config) *Writer {
	return &Writer{
		Config: cfg, turning: make(chan struct{}, 1), hours: map[string]*sum{}, waiting: map[key]row.Rollup{},
	}
}

// begin waits until nothing else ends or writes a minute, and reports whether it came to that before ctx ended.
func (w *Writer) begin(ctx context.Context) bool {
	select {
	case w.turning <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *Writer) end() { <-w.turning }

// Loop writes each minute when it is over, until ctx ends. While trims, it deletes what has been kept long enough.
func (w *Writer) Loop(ctx context.Context, trims func() bool) {
	w.turn(ctx)
	for lifecycle.Sleep(ctx, w.rest()) {
		if !w.turn(ctx) || !lifecycle.Sleep(ctx, rand.N(spread)) {
			continue
		}
		w.Write(ctx)
		if trims() {
			w.trim(ctx)
		}
	}
}

// rest returns how long this minute lasts.
func (w *Writer) rest() time.Duration {
	now, known := w.Now()
	if !known {
		return time.Second
	}
	return row.SpanMinute.Begin(now).Add(row.SpanMinute.Length()).Sub(now)
}

// Close writes what there is.
func (w *Writer) Close(ctx context.Context) {
	if w.begin(ctx) {
		w.count()
		w.end()
	}
	w.Write(ctx)
}

// Mark notes what has happened to a node or a tag. It is written with the next minute.
func (w *Writer) Mark(at row.Time, tag, node string, mark row.Mark) {
	w.put(row.Rollup{Span: row.SpanMark, Begin: at, Tag: tag, Node: node, Mark: mark})
}

func (w *Writer) put(r row.Rollup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) < mostWaiting {
		w.waiting[key{r.Span, r.Begin, r.Tag, r.Node}] = r
	}
}

// turn ends the minute that is being counted if it is over, and reports whether it was.
func (w *Writer) turn(ctx context.Context) bool {
	if !w.begin(ctx) {
		return false
	}
	defer w.end()
	now, known := w.Now()
	if !known {
		return false
	}
	next, length := row.SpanMinute.Begin(now), row.SpanMinute.Length()
	if d := now.Sub(w.minute); d >= -length && d < length { // a new reading may take the bound back a little
		return false
	}
	w.count()
	if next < w.minute {
		w.epoch++
	}
	if next < w.minute || row.SpanHour.Begin(next) != row.SpanHour.Begin(w.minute) {
		w.Counts.Keep(func(tag string) bool { return w.hours[tag] != nil })
		clear(w.hours)
	}
	over := w.minute != 0
	w.minute = next
	return over
}

// count puts what was counted until now into rows of the minute and of its hour.
func (w *Writer) count() {
	if w.minute == 0 {
		now, known := w.Now()
		if !known {
			return
		}
		w.minute = row.SpanMinute.Begin(now)
	}
	all := new(sum)
	for _, r := range w.Counts.Take() {
		all.add(&r)
		w.addTo(r.Tag, &r)
	}
	if all.fresh {
		r := all.rollup()
		w.addTo(row.EveryTag, &r)
	}
	for tag, hour := range w.hours {
		if hour.fresh {
			hour.fresh = false
			w.putAs(row.SpanHour, tag, hour.rollup())
		}
	}
}

func (w *Writer) addTo(tag string, r *row.Rollup) {
	w.putAs(row.SpanMinute, tag, *r)
	if w.hours[tag] == nil {
		w.hours[tag] = new(sum)
	}
	w.hours[tag].add(r)
}

func (w *Writer) putAs(span row.RollupSpan, tag string, r row.Rollup) {
	r.Span, r.Begin, r.Tag, r.Node = span, span.Begin(w.minute), tag, w.Node
	if w.epoch > 0 {
		r.Node += "-" + strconv.Itoa(w.epoch)
	}
	w.put(r)
}

// Write writes what waits, marks for example. What the database does not take now waits for the next minute.
func (w *Writer) Write(ctx context.Context) {
	if !w.begin(ctx) {
		return
	}
	defer w.end()
	w.mu.Lock()
	waiting := maps.Clone(w.waiting)
	w.mu.Unlock()
	for keys := range slices.Chunk(slices.SortedFunc(maps.Keys(waiting), key.compare), batch) {
		rows := make([]row.Rollup, len(keys))
		for i, k := range keys {
			rows[i] = waiting[k]
		}
		call, cancel := context.WithTimeout(ctx, callTime)
		err := w.Store.PutRollups(call, rows)
		cancel()
		class := row.ClassOf(err)
		if err == nil || class == row.ClassOperator || class == row.ClassCaller { // it would be refused again
			w.mu.Lock()
			for _, k := range keys {
				delete(w.waiting, k)
			}
			w.mu.Unlock()
		}
		if err != nil {
			w.Life.Failed("writing lateness and results", err)
			return
		}
	}
}

func (w *Writer) trim(ctx context.Context) {
	now, known := w.Now()
	if !known {
		return
	}
	for span, keep := range map[row.RollupSpan]time.Duration{
		row.SpanMark: KeepHours, row.SpanMinute: KeepMinutes, row.SpanHour: KeepHours,
	} {
		call, cancel := context.WithTimeout(ctx, callTime)
		_, err := w.Store.TrimRollups(call, span, now.Add(-keep), trimAtOnce)
		cancel()
		if err != nil && row.ClassOf(err) != row.ClassLocked && ctx.Err() == nil {
			w.Life.Failed("deleting old lateness and results", err)
			return
		}
	}
}
