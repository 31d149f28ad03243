package spec

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
)

// fields are the fields of a cron line, each a set of bits.
type fields struct {
	second, minute, hour, dom, month, dow uint64

	last           bool // the last day of the month matches, too
	anyDom, anyDow bool // a star: the other day field alone decides
}

// always matches every second.
var always = fields{
	second: all(0, 59), minute: all(0, 59), hour: all(0, 23), dom: all(1, 31), month: all(1, 12), dow: all(0, 6),
	anyDom: true, anyDow: true,
}

// all returns the set of the numbers from first to last.
func all(first, last int) uint64 { return 1<<(last+1) - 1<<first }

func has(set uint64, n int) bool { return set>>n&1 != 0 }

// date is a day of a calendar without a zone.
type date struct {
	number  int64 // since the epoch
	year    int
	month   time.Month
	day     int
	weekday time.Weekday
}

func dateOf(number int64) date {
	t := time.Unix(number*day, 0).UTC()
	year, month, d := t.Date()
	return date{number, year, month, d, t.Weekday()}
}

// monthAfter returns the first day of the next month.
func (d date) monthAfter() date {
	return dateOf(time.Date(d.year, d.month+1, 1, 0, 0, 0, 0, time.UTC).Unix() / day)
}

func (d date) lastOfMonth() bool { return dateOf(d.number+1).month != d.month }

func (f *fields) matchDay(d date) bool {
	if !has(f.month, int(d.month)) {
		return false
	}
	dom := has(f.dom, d.day) || f.last && d.lastOfMonth()
	dow := has(f.dow, int(d.weekday))
	if f.anyDom || f.anyDow {
		return dom && dow
	}
	return dom || dow
}

// next implements [line].
func (f fields) next(s *Spec, from, until int64) (int64, bool) {
	rule := s.rule
	if f.everyHour() {
		rule = delaytask.DSTLiteral // it follows the hours that really pass
	}
	return s.search(f, rule, from, min(until, from+s.horizon()))
}

func (f *fields) everyHour() bool { return f.hour == always.hour }

// match implements [matcher]. It skips whole months, days and hours, so its cost follows what it finds and not the time
// in between.
func (f fields) match(s *Spec, from, until int64) (int64, bool) {
	var empty map[uint16]bool // by the excludes that are in force on a day: nothing of such a day is left
	for d := dateOf(div(from, day)); d.number*day < until && s.spend(1); {
		if !has(f.month, int(d.month)) {
			d = d.monthAfter()
			continue
		}
		if f.matchDay(d) {
			begin := max(from-d.number*day, 0)
			inForce := s.excludes.on(d)
			if begin > 0 || !empty[inForce] {
				if second, found := f.matchTime(s.excludes, inForce, begin); found {
					local := d.number*day + second
					return local, local < until
				}
				if empty == nil {
					empty = map[uint16]bool{}
				}
				empty[inForce] = empty[inForce] || begin == 0
				s.spend(costOfEmptyDay)
			}
		}
		d = dateOf(d.number + 1)
	}
	return 0, false
}

// matchTime returns the first second of a day, from begin on, that the line names and that no exclude in force covers.
func (f *fields) matchTime(x excludes, inForce uint16, begin int64) (int64, bool) {
	for hour := int(begin / 3600); hour < 24; hour++ {
		if !has(f.hour, hour) {
			continue
		}
		for minute := 0; minute < 60; minute++ {
			first := int64(hour*3600 + minute*60)
			if !has(f.minute, minute) || first+60 <= begin {
				continue
			}
			left := f.second &^ x.seconds(inForce, hour, minute)
			if begin > first {
				left &^= all(0, int(begin-first)-1)
			}
			if left != 0 {
				return first + int64(bits.TrailingZeros64(left)), true
			}
		}
	}
	return 0, false
}

// div divides and rounds down.
func div(a, b int64) int64 { return (a - mod(a, b)) / b }

// excludes are the lines that begin with "!". There are 16 lines at most.
type excludes []exclude

type exclude struct {
	fields
	date int64 // a single day, as its number since the epoch; the fields match all of it
	once bool  // date counts
}

// on returns which excludes are in force on a day, as a set.
func (x excludes) on(d date) (inForce uint16) {
	for i := range x {
		if x[i].once && x[i].date == d.number || !x[i].once && x[i].matchDay(d) {
			inForce |= 1 << i
		}
	}
	return inForce
}

// seconds returns the seconds of a minute that the excludes in force leave out.
func (x excludes) seconds(inForce uint16, hour, minute int) (set uint64) {
	for rest := inForce; rest != 0; rest &= rest - 1 {
		f := &x[bits.TrailingZeros16(rest)]
		if has(f.hour, hour) && has(f.minute, minute) {
			set |= f.second
		}
	}
	return set
}

// cover reports whether a local second is excluded.
func (x excludes) cover(local int64) bool {
	if len(x) == 0 {
		return false
	}
	d := dateOf(div(local, day))
	second := int(local - d.number*day)
	return has(x.seconds(x.on(d), second/3600, second/60%60), second%60)
}

func (x exclude) String() string {
	if x.once {
		return "!" + time.Unix(x.date*day, 0).UTC().Format(time.DateOnly)
	}
	return "!" + x.text(always.second)
}

// String returns the canonical form of a line. The names of months and days are numbers there.
func (f fields) String() string { return f.text(1 << 0) }

// text leaves the seconds out where they are what five fields mean.
func (f fields) text(unwritten uint64) string {
	dom := list(f.dom, 1, 31, f.anyDom)
	if f.last {
		dom = strings.TrimPrefix(dom+",L", ",")
	}
	texts := []string{
		list(f.second, 0, 59, true), list(f.minute, 0, 59, true), list(f.hour, 0, 23, true), dom,
		list(f.month, 1, 12, true), list(f.dow, 0, 6, f.anyDow),
	}
	if f.second == unwritten {
		texts = texts[1:]
	}
	return strings.Join(texts, " ")
}

// list writes a set of numbers. A star stands for all of them where that means the same.
func list(set uint64, first, last int, star bool) string {
	switch {
	case set == all(first, last) && star:
		return "*"
	case set == 0:
		return ""
	}
	if step := stepOf(set, first, last); step > 1 {
		return "*/" + strconv.Itoa(step)
	}
	var items []string
	for n := first; n <= last; n++ {
		if !has(set, n) {
			continue
		}
		end := n
		for has(set, end+1) {
			end++
		}
		switch end - n {
		case 0:
			items = append(items, strconv.Itoa(n))
		case 1:
			items = append(items, strconv.Itoa(n), strconv.Itoa(end))
		default:
			items = append(items, strconv.Itoa(n)+"-"+strconv.Itoa(end))
		}
		n = end
	}
	return strings.Join(items, ",")
}

// stepOf returns n when the set is what "*/n" means and has at least three numbers, else 0.
func stepOf(set uint64, first, last int) int {
	if bits.OnesCount64(set) < 3 || !has(set, first) {
		return 0
	}
	step := bits.TrailingZeros64(set&^(1<<first)) - first
	var want uint64
	for n := first; n <= last; n += step {
		want |= 1 << n
	}
	if set != want {
		return 0
	}
	return step
}
