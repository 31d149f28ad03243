package spec_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
)

// An oracle tells the ticks of a definition by asking each moment of a walk. It shares no code and no idea with the
// package: no search, no table of transitions, no calendar arithmetic.
type oracle struct {
	definition delaytask.Spec
	zone       *time.Location
	in, out    []pattern
	every      [][2]int64 // interval and phase
	instants   []int64
}

// pattern says which local times match.
type pattern struct {
	second, minute, hour, day, month, weekday [60]bool
	last, anyDay, anyWeekday                  bool
	year                                      int // 0: each
}

var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// newOracle reads a definition that is known to be well-formed.
func newOracle(t rapid.TB, d delaytask.Spec) *oracle {
	t.Helper()
	o, zone := &oracle{definition: d}, d.Zone
	for _, line := range d.Lines {
		if prefix, rest, cut := strings.Cut(line, " "); cut && strings.Contains(prefix, "TZ=") {
			_, zone, _ = strings.Cut(prefix, "=")
			line = rest
		}
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case kind == "@every":
			interval, phase, _ := strings.Cut(rest, "/")
			o.every = append(o.every, [2]int64{seconds(t, interval), seconds(t, phase)})
		case kind == "@at":
			if at, err := time.Parse(time.RFC3339, rest); err == nil {
				o.instants = append(o.instants, at.Unix())
				continue
			}
			if len(rest) == len("2027-01-01T09:00") {
				rest += ":00"
			}
			at := local(t, "2006-01-02T15:04:05", rest)
			o.in = append(o.in, dated(t, at.Format("5 4 15 2 1 *"), at.Year()))
		case strings.HasPrefix(line, "!") && strings.Count(line, " ") == 0:
			at := local(t, "!2006-01-02", line)
			o.out = append(o.out, dated(t, at.Format("* * * 2 1 *"), at.Year()))
		case strings.HasPrefix(line, "!"):
			o.out = append(o.out, dated(t, withSeconds(line[1:], "*"), 0))
		default:
			if nickname, found := nicknames[line]; found {
				line = nickname
			}
			o.in = append(o.in, dated(t, withSeconds(line, "0"), 0))
		}
	}
	o.zone = zoneOf(t, zone)
	return o
}

func seconds(t rapid.TB, text string) int64 {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	mustOK(t, err)
	return int64(d / time.Second)
}

func local(t rapid.TB, layout, text string) time.Time {
	at, err := time.Parse(layout, text)
	mustOK(t, err)
	return at
}

func withSeconds(line, second string) string {
	if len(strings.Fields(line)) == 5 {
		return second + " " + line
	}
	return line
}

func dated(t rapid.TB, line string, year int) pattern {
	t.Helper()
	f := strings.Fields(line)
	if len(f) != 6 {
		t.Fatalf("the oracle cannot read %q", line)
	}
	stars := func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(item string) bool {
			return item == "*" || item == "?" || item == "*/1"
		})
	}
	p := pattern{
		second: set(t, f[0], 0, 59, nil), minute: set(t, f[1], 0, 59, nil), hour: set(t, f[2], 0, 23, nil),
		day: set(t, f[3], 1, 31, nil), month: set(t, f[4], 1, 12, month), weekday: set(t, f[5], 0, 7, weekday),
		last: slices.Contains(strings.Split(f[3], ","), "L"), anyDay: stars(f[3]), anyWeekday: stars(f[5]), year: year,
	}
	p.weekday[0] = p.weekday[0] || p.weekday[7]
	return p
}

func month(name string) int {
	at, err := time.Parse("Jan", name)
	if err != nil {
		return -1
	}
	return int(at.Month())
}

func weekday(name string) int {
	return slices.Index([]string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}, strings.ToUpper(name))
}

// set asks for each value whether an item of the list names it.
func set(t rapid.TB, list string, low, high int, named func(string) int) (values [60]bool) {
	number := func(text string) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		n := -1
		if named != nil {
			n = named(text)
		}
		if n < 0 {
			t.Fatalf("the oracle cannot read %q of %q", text, list)
		}
		return n
	}
	for item := range strings.SplitSeq(list, ",") {
		if item == "L" {
			continue
		}
		span, every, stepped := strings.Cut(item, "/")
		first, final, ranged := strings.Cut(span, "-")
		a, b, step := low, high, 1
		if span != "*" && span != "?" {
			a, b = number(first), number(first)
			switch {
			case ranged:
				b = number(final)
				if b == 0 && a > 0 && high == 7 {
					b = 7 // FRI-SUN
				}
			case stepped:
				b = high
			}
		}
		if stepped {
			step = number(every)
		}
		for v := low; v <= high; v++ {
			values[v] = values[v] || v >= a && v <= b && (v-a)%step == 0
		}
	}
	return values
}

// matches tells whether the local second is named, in the minute of the moment w.
func (p *pattern) matches(w *moment, second int) bool {
	return p.second[second] && p.minuteMatches(w)
}

func (p *pattern) minuteMatches(w *moment) bool {
	if !p.minute[w.minute] || !p.hour[w.hour] || !p.month[w.month] || p.year != 0 && p.year != w.year {
		return false
	}
	day, weekday := p.day[w.day] || p.last && w.last, p.weekday[w.weekday]
	if !p.anyDay && !p.anyWeekday {
		return day || weekday
	}
	return (day || p.anyDay) && (weekday || p.anyWeekday)
}

func (o *oracle) excluded(w *moment, second int) bool {
	return slices.ContainsFunc(o.out, func(p pattern) bool { return p.matches(w, second) })
}

// ticks are those within the walk, in order.
func (o *oracle) ticks(w *walk) []int64 {
	var found []int64
	rule := o.definition.DST
	for i := range o.in {
		p := &o.in[i]
		literal := rule == delaytask.DSTLiteral || !slices.Contains(p.hour[:24], false)
		firstPass := !literal && (rule == delaytask.DSTOnce || rule == delaytask.DSTSkip)
		for at := range w.moments {
			m := &w.moments[at]
			if firstPass && m.again || !p.minuteMatches(m) {
				continue
			}
			for more := range w.step {
				if p.matches(m, m.second+more) && !o.excluded(m, m.second+more) {
					found = append(found, w.from+int64(at*w.step+more))
				}
			}
		}
		for _, g := range w.gaps {
			if literal || rule == delaytask.DSTSkip || o.excluded(&g.end, g.end.second) {
				continue
			}
			moved := func(m moment) bool {
				for more := range w.step {
					if p.matches(&m, m.second+more) && !o.excluded(&m, m.second+more) {
						return true
					}
				}
				return false
			}
			if slices.ContainsFunc(g.named, moved) {
				found = append(found, g.at)
			}
		}
	}
	known := func(at int64) {
		m := momentOf(at + offset(o.zone, at))
		if at >= w.from && at < w.to && !o.excluded(&m, m.second) {
			found = append(found, at)
		}
	}
	for _, at := range o.instants {
		known(at)
	}
	for _, every := range o.every {
		at := w.from
		for at < w.to && (at-every[1])%every[0] != 0 {
			at++
		}
		for ; at < w.to; at += every[0] {
			known(at)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(at int64) bool {
		tick, d := time.Unix(at, 0), o.definition
		return at <= 0 || tick.Before(d.Start) || !d.End.IsZero() && tick.After(d.End)
	})
}

func zoneOf(t rapid.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	mustOK(t, err)
	return zone
}

func mustOK(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(zone *time.Location, ticks []int64) (list []string) {
	for _, at := range ticks {
		list = append(list, fmt.Sprint(time.Unix(at, 0).In(zone).Format("2006-01-02T15:04:05Z07:00")))
	}
	return list
}
