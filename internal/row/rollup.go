package row

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/report"
)

// Rollup is a row of delay_task_rollup: what one process has counted of a tag within a span of time, or a mark. One
// process alone writes it, each time as a whole, so a write that is repeated changes nothing.
type Rollup struct {
	Span  RollupSpan
	Begin Time
	Tag   string // EveryTag, a tag, or OtherTags; of a mark "" where it is about no tag
	Node  string // the token of the process, and of a mark the process that it is about

	Completed, Failed int64 // tasks
	Retried           int64 // attempts that another one follows
	Lost              int64 // leases that were over

	Late Histogram     // of first attempts
	Max  time.Duration // the latest of them, to the microsecond

	Mark Mark // of a row of SpanMark
}

// They stand in the place of a tag. No valid tag is like these.
const (
	EveryTag  = ""        // all tags of a process together
	OtherTags = "(other)" // those beyond the tags that a process counts apart
)

// RollupSpan is how many minutes a rollup is about.
type RollupSpan int

// The spans.
const (
	SpanMark   RollupSpan = 0 // a moment
	SpanMinute RollupSpan = 1
	SpanHour   RollupSpan = 60
)

// Length returns how long the span is.
func (s RollupSpan) Length() time.Duration { return time.Duration(s) * time.Minute }

// Begin returns when the span that t is in began.
func (s RollupSpan) Begin(t Time) Time { return t - t%Time(s.Length()/time.Microsecond) }

// Mark is something that happened to all tasks, or to the tasks of a tag.
type Mark struct {
	Kind report.MarkKind
	Name string // of the node, or the identity of the server; of a pause its actor: the rollup has the tag
}

// String returns the mark as it is stored.
func (m Mark) String() string { return strings.TrimSuffix(string(m.Kind)+" "+m.Name, " ") }

// ReadMark reads what String returns.
func ReadMark(stored []byte) Mark {
	kind, name, _ := strings.Cut(string(stored), " ")
	return Mark{report.MarkKind(kind), name}
}

// Histogram counts values by classes, in the order of these. Classes without values are left out. Histograms of
// several processes add up.
type Histogram []ClassCount

// ClassCount is how many values a class has.
type ClassCount struct {
	Class int
	N     int64
}

// LateClasses is how many classes there are. The last one has all values from 66 hours on.
const LateClasses = 4 * 37

// LateClass returns the class of a lateness. From 4 µs on, the upper bound of a class is at most a quarter above its
// lower one.
func LateClass(late time.Duration) int {
	micros := max(late.Microseconds(), 0)
	if micros < 4 {
		return int(micros)
	}
	octave := bits.Len64(uint64(micros)) - 1
	return min(4*(octave-1)+int(micros>>(octave-2)&3), LateClasses-1)
}

// LateFrom returns the smallest lateness of a class.
func LateFrom(class int) time.Duration {
	if class < 4 {
		return time.Duration(class) * time.Microsecond
	}
	octave := class/4 + 1
	return time.Duration(int64(4+class%4)<<(octave-2)) * time.Microsecond
}

// Count returns how many values the histogram has.
func (h Histogram) Count() (n int64) {
	for _, c := range h {
		n += c.N
	}
	return n
}

// Quantile estimates the value below which the share of the values is, by a straight line through its class. It is at
// most the maximum.
func (h Histogram) Quantile(share float64, most time.Duration) time.Duration {
	rank := share * float64(h.Count())
	for _, c := range h {
		if n := float64(c.N); rank > n {
			rank -= n
			continue
		}
		from, to := LateFrom(c.Class), LateFrom(c.Class+1)
		return min(from+time.Duration(rank/float64(c.N)*float64(to-from)), most)
	}
	return most
}

// Column returns the histogram as it is stored: pairs of class and number. No value at all is "".
func (h Histogram) Column() string {
	pairs := make([]string, len(h))
	for i, c := range h {
		pairs[i] = fmt.Sprintf("%d:%d", c.Class, c.N)
	}
	return strings.Join(pairs, " ")
}

// ReadHistogram reads what Column returns. What cannot be read of it is left out.
func ReadHistogram(stored []byte) Histogram {
	if len(stored) == 0 {
		return nil
	}
	h := make(Histogram, 0, 1+strings.Count(string(stored), " "))
	for pair := range strings.SplitSeq(string(stored), " ") {
		class, number, _ := strings.Cut(pair, ":")
		c, err1 := strconv.Atoi(class)
		n, err2 := strconv.ParseInt(number, 10, 64)
		if err1 == nil && err2 == nil && c >= 0 && c < LateClasses && n > 0 {
			h = append(h, ClassCount{c, n})
		}
	}
	return h
}
