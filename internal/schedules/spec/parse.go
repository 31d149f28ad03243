package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/delaytask/delaytask"
)

const (
	maxLines      = 16
	maxLineLength = 256
)

// wrong says what is wrong with a definition, and where.
type wrong = delaytask.SpecError

// Parse reads a definition. The error is a *[delaytask.SpecError], or a *[ZoneError].
func Parse(d delaytask.Spec) (*Spec, error) {
	s := &Spec{rule: cmp.Or(d.DST, delaytask.DSTOnce), start: earliest, end: latest}
	if !slices.Contains(rules, s.rule) {
		return nil, &wrong{Reason: fmt.Sprintf("dst: %.40q is not one of once, skip, both, literal", d.DST)}
	}
	if len(d.Lines) > maxLines {
		return nil, &wrong{Reason: fmt.Sprintf("%d lines are too many: at most %d", len(d.Lines), maxLines)}
	}
	texts, zone, err := cutZones(d)
	if err != nil {
		return nil, err
	}
	if s.zone, err = LoadZone(zone); err != nil {
		return nil, err
	}
	s.utc = zone == ""
	for i, text := range texts {
		if err := s.add(text); err != nil {
			err.Line = i + 1
			err.Column += len(d.Lines[i]) - len(text.whole)
			return nil, err
		}
	}
	if !d.Start.IsZero() {
		s.start = max(s.start, d.Start.Add(time.Second-1).Unix())
	}
	if !d.End.IsZero() {
		s.end = min(s.end, d.End.Unix())
	}
	s.normalize()
	return s, s.check()
}

// normalize gives equal specs equal forms.
func (s *Spec) normalize() {
	byText := func(a, b fmt.Stringer) int { return cmp.Compare(a.String(), b.String()) }
	slices.SortStableFunc(s.lines, func(a, b line) int { return byText(a, b) })
	s.lines = slices.CompactFunc(s.lines, func(a, b line) bool { return byText(a, b) == 0 })
	slices.SortStableFunc(s.excludes, func(a, b exclude) int { return byText(a, b) })
	s.excludes = slices.CompactFunc(s.excludes, func(a, b exclude) bool { return byText(a, b) == 0 })
}

// check refuses what never runs. A wall time that a rule drops is such a case, too.
func (s *Spec) check() error {
	if len(s.lines) == 0 {
		return &wrong{Reason: "no line names a time to run: write a cron line, @every or @at"}
	}
	if s.start > s.end {
		return &wrong{Reason: "the end is before the start"}
	}
	bounded := s.bounded(leastCost)
	if _, found := bounded.next(s.start, none); !found {
		if !bounded.spend(0) {
			return &wrong{Reason: "the first tick is too hard to find: the excludes leave out too much"}
		}
		return &wrong{Reason: "no tick at all: nothing matches, or everything is left out by excludes, start or end"}
	}
	return nil
}

// Definition returns what was read, in canonical form. Parse of it gives an equal Spec.
func (s *Spec) Definition() delaytask.Spec {
	d := delaytask.Spec{Zone: s.zone.String(), DST: s.rule}
	for _, l := range s.lines {
		d.Lines = append(d.Lines, l.String())
	}
	for _, x := range s.excludes {
		d.Lines = append(d.Lines, x.String())
	}
	if s.start > earliest {
		d.Start = time.Unix(s.start, 0).UTC()
	}
	if s.end < latest {
		d.End = time.Unix(s.end, 0).UTC()
	}
	return d
}

// text is a line without its zone and spaces around it. Columns are counted in whole.
type text struct{ whole, line string }

func (t text) column(of string) int { return len(t.whole) - len(of) + 1 }

var zonePrefix = regexp.MustCompile(`^(?:CRON_)?TZ=(\S*)\s*`)

// cutZones returns the lines without a prefix such as "CRON_TZ=Europe/Berlin ", which all must name one zone, and that
// zone.
func cutZones(d delaytask.Spec) (texts []text, zone string, err error) {
	zone = d.Zone
	for i, l := range d.Lines {
		if len(l) > maxLineLength {
			return nil, "", &wrong{Line: i + 1, Reason: fmt.Sprintf("longer than %d bytes", maxLineLength)}
		}
		whole := strings.TrimLeft(l, " \t")
		if found := zonePrefix.FindStringSubmatch(whole); found != nil {
			if found[1] == "" {
				return nil, "", &wrong{Line: i + 1, Reason: "the zone has no name"}
			}
			if zone != "" && zone != found[1] {
				return nil, "", &wrong{Line: i + 1, Reason: fmt.Sprintf("two zones: %q and %q", zone, found[1])}
			}
			zone, whole = found[1], whole[len(found[0]):]
		}
		texts = append(texts, text{whole, strings.TrimRight(whole, " \t\r")})
	}
	return texts, zone, nil
}

func (s *Spec) add(t text) *wrong {
	rest, negated := strings.CutPrefix(t.line, "!")
	switch {
	case t.line == "":
		return &wrong{Reason: "the line is empty"}
	case negated:
		return s.addExclude(t, strings.TrimLeft(rest, " \t"))
	case strings.HasPrefix(rest, "@every"):
		return s.addInterval(t, rest)
	case strings.HasPrefix(rest, "@at"):
		return s.addSingle(t, rest)
	}
	f, err := readFields(t, rest, 1<<0)
	if err != nil {
		return err
	}
	s.lines = append(s.lines, f)
	return nil
}

func (s *Spec) addExclude(t text, rest string) *wrong {
	if d, err := time.Parse(time.DateOnly, rest); err == nil {
		s.excludes = append(s.excludes, exclude{fields: always, date: d.Unix() / day, once: true})
		return nil
	}
	f, err := readFields(t, rest, always.second)
	if err != nil && !strings.ContainsAny(rest, " \t@") {
		err = &wrong{Column: t.column(rest), Reason: `"!" takes a date such as 2027-12-24, or a cron line`}
	}
	if err != nil {
		return err
	}
	s.excludes = append(s.excludes, exclude{fields: f})
	return nil
}

func (s *Spec) addInterval(t text, rest string) *wrong {
	value := strings.TrimLeft(strings.TrimPrefix(rest, "@every"), " \t")
	refuse := func(reason string) *wrong {
		return &wrong{Column: t.column(value), Reason: reason}
	}
	every, phase, hasPhase := strings.Cut(value, "/")
	i := interval{}
	for _, part := range []struct {
		text  string
		least int64
		to    *int64
	}{{every, 1, &i.every}, {phase, 0, &i.phase}} {
		if !hasPhase && part.to == &i.phase {
			break
		}
		d, err := time.ParseDuration(part.text)
		switch {
		case err != nil:
			return refuse(fmt.Sprintf("%q is not a duration: write one such as 90m, or 24h/2h with a phase", part.text))
		case d%time.Second != 0:
			return refuse(fmt.Sprintf("%s is not a whole number of seconds", part.text))
		case d < time.Duration(part.least)*time.Second:
			return refuse(fmt.Sprintf("%s is less than %d s", part.text, part.least))
		}
		*part.to = int64(d / time.Second)
	}
	if i.phase >= i.every {
		return refuse("the phase must be below the interval")
	}
	s.lines = append(s.lines, i)
	return nil
}

func (s *Spec) addSingle(t text, rest string) *wrong {
	value := strings.TrimLeft(strings.TrimPrefix(rest, "@at"), " \t")
	if at, err := time.Parse(time.RFC3339, value); err == nil && at.Nanosecond() == 0 {
		s.lines = append(s.lines, instant(at.Unix()))
		return nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, value); err == nil && at.Nanosecond() == 0 {
			s.lines = append(s.lines, wallTime(at.Unix()))
			return nil
		}
	}
	return &wrong{Column: t.column(value), Reason: fmt.Sprintf(
		"%q is not a time: write one such as 2027-01-01T09:00, or 2027-01-01T09:00:00Z for an instant", value)}
}

var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// field is one field of a cron line.
type field struct {
	name        string
	first, last int
	parse       cron.Parser
	of          func(*cron.SpecSchedule) uint64
	into        func(*fields) *uint64
}

var fieldsInOrder = []field{
	{"second", 0, 59, cron.NewParser(cron.Second), func(c *cron.SpecSchedule) uint64 { return c.Second },
		func(f *fields) *uint64 { return &f.second }},
	{"minute", 0, 59, cron.NewParser(cron.Minute), func(c *cron.SpecSchedule) uint64 { return c.Minute },
		func(f *fields) *uint64 { return &f.minute }},
	{"hour", 0, 23, cron.NewParser(cron.Hour), func(c *cron.SpecSchedule) uint64 { return c.Hour },
		func(f *fields) *uint64 { return &f.hour }},
	{"day of month", 1, 31, cron.NewParser(cron.Dom), func(c *cron.SpecSchedule) uint64 { return c.Dom },
		func(f *fields) *uint64 { return &f.dom }},
	{"month", 1, 12, cron.NewParser(cron.Month), func(c *cron.SpecSchedule) uint64 { return c.Month },
		func(f *fields) *uint64 { return &f.month }},
	{"day of week", 0, 6, cron.NewParser(cron.Dow), func(c *cron.SpecSchedule) uint64 { return c.Dow },
		func(f *fields) *uint64 { return &f.dow }},
}

var words = regexp.MustCompile(`\S+`)

// readFields reads a cron line. A line of five fields has the seconds that are unwritten there.
func readFields(t text, rest string, unwritten uint64) (f fields, err *wrong) {
	columns := t.column(rest)
	if strings.HasPrefix(rest, "@") {
		standard, known := descriptors[strings.ToLower(rest)]
		if !known {
			return f, &wrong{Column: columns, Reason: fmt.Sprintf("%q is unknown: there are @every, @at, @yearly, "+
				"@monthly, @weekly, @daily, @hourly", rest)}
		}
		rest = standard
	}
	places := words.FindAllStringIndex(rest, -1)
	f.second = unwritten
	wanted := fieldsInOrder
	switch len(places) {
	case len(wanted):
	case len(wanted) - 1:
		wanted = wanted[1:]
	default:
		return f, &wrong{Column: columns, Reason: fmt.Sprintf("%d fields: a cron line has 5 (minute hour day-of-month "+
			"month day-of-week), or 6 with the second first", len(places))}
	}
	for i, of := range wanted {
		if reason := of.read(&f, rest[places[i][0]:places[i][1]]); reason != "" {
			return f, &wrong{Column: columns + places[i][0], Reason: of.name + ": " + reason}
		}
	}
	if f.never() {
		return f, &wrong{Column: columns, Reason: "no month that is named has such a day: the line never runs"}
	}
	return f, nil
}

// never reports whether no day of any year matches.
func (f *fields) never() bool {
	if f.last || f.dow != 0 && !f.anyDow {
		return false
	}
	days := [...]int{1: 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for month := 1; month <= 12; month++ {
		if has(f.month, month) && f.dom&all(1, days[month]) != 0 {
			return false
		}
	}
	return true
}

var allowed = regexp.MustCompile(`^[0-9A-Za-z*?/,-]*$`)

const starBit = 1 << 63

// read sets the field by its items, or says why it cannot. Items that robfig/cron does not know, or takes although they
// mean nothing, are read or refused here.
func (of *field) read(f *fields, text string) (reason string) {
	if !allowed.MatchString(text) {
		return fmt.Sprintf("%q holds a character that has no meaning here", text)
	}
	set := of.into(f)
	*set = 0
	for item := range strings.SplitSeq(text, ",") {
		switch {
		case item == "":
			return fmt.Sprintf("%q has an empty item", text)
		case of.name == "day of month" && strings.EqualFold(item, "L"):
			f.last = true
			continue
		case strings.ContainsAny(item, "*?") && !starred.MatchString(item):
			return fmt.Sprintf("%q is not one of *, */n, n, a-b, a-b/n", item)
		case stepOver(item, of.last-of.first+1):
			return fmt.Sprintf("%q steps farther than the field reaches (%d to %d): name the number alone", item,
				of.first, of.last)
		case of.name == "day of week" && sundays.MatchString(item):
			return fmt.Sprintf("%q is Sunday alone in some crons and each day in others: write SUN, or *", item)
		}
		bits, err := of.bits(item)
		if err != nil {
			return err.Error()
		}
		*set |= bits
	}
	star := *set&starBit != 0
	*set &^= starBit
	switch of.name {
	case "day of month":
		f.anyDom, f.last = star, f.last && !star
	case "day of week":
		f.anyDow = star
	}
	return ""
}

// sundays matches a range from Sunday to Sunday, by its name.
var sundays = regexp.MustCompile(`^(?i:0|7|SUN)-(?i:SUN)(/.*)?$`)

// stepOver reports whether an item has a step above the bound. The others refuse what is no number.
func stepOver(item string, most int) bool {
	_, step, _ := strings.Cut(item, "/")
	n, err := strconv.Atoi(step)
	return err == nil && n > most
}

var starred = regexp.MustCompile(`^[*?](/[0-9]+)?$`)

// bits returns the numbers of an item. Sunday is 0 and, in the place of 7, also the end of a range.
func (of *field) bits(item string) (uint64, error) {
	if of.name != "day of week" {
		return of.ask(item)
	}
	span, step, hasStep := strings.Cut(item, "/")
	first, last, ranged := strings.Cut(span, "-")
	sunday := func(name string) bool { return name == "7" || strings.EqualFold(name, "SUN") }
	if !ranged || !sunday(last) {
		if first == "7" {
			item = "0" + item[1:]
		}
		return of.ask(item)
	}
	begin, err := of.ask(first)
	if first == "7" {
		begin, err = 1<<7, nil
	}
	by := 1
	if hasStep {
		n, stepErr := strconv.Atoi(step)
		if stepErr != nil || n < 1 {
			stepErr = fmt.Errorf("%q is not a step", step)
		}
		by, err = n, errors.Join(err, stepErr)
	}
	if err != nil {
		return 0, err
	}
	var set uint64
	for n := numberOf(begin); n <= 7; n += by {
		set |= 1 << (n % 7)
	}
	return set, nil
}

func numberOf(single uint64) (n int) {
	for single>>n != 1 {
		n++
	}
	return n
}

// ask lets robfig/cron read an item.
func (of *field) ask(item string) (uint64, error) {
	schedule, err := of.parse.Parse(item)
	if err != nil {
		if strings.Contains(err.Error(), "failed to parse") {
			err = fmt.Errorf("%q is not a number or name of this field (%d to %d)", item, of.first, of.last)
		}
		return 0, err
	}
	return of.of(schedule.(*cron.SpecSchedule)), nil
}
