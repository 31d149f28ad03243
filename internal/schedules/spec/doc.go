// Package spec computes the ticks of a schedule: the instants that cron lines, intervals and single times name in a
// time zone, clock changes included. It knows no database and no clock.
//
// robfig/cron reads the fields of a line. The search is our own, because that package's Next loses runs in zones whose
// clock changes at midnight or by half an hour, and does not return for a day that a zone left out.
//
// The search works on local seconds: what the clock on the wall shows, counted as if it were UTC. Between two changes
// of a zone's offset an instant and its local second differ by a constant, so a line needs no zone to find its next
// match there. What a change leaves out or repeats is decided where it happens.
//
//   - spec.go: a Spec, its next and previous tick.
//   - parse.go: a definition, its lines and what is refused.
//   - zone.go: the zone of a name, and the names that may be meant.
//   - fields.go: the fields of a cron line, and the search for a match.
//   - interval.go: intervals and single times.
//   - change.go: the changes of a zone, and the four rules for them.
//   - text.go: the stored form.
//   - cost.go: the bound of what a search costs.
//   - count.go: how many ticks there are, without a search for each.
//   - preview.go: ticks with notes on what a clock change has done to them.
package spec
