package spec

import (
	"strings"
	"time"

	"github.com/delaytask/delaytask"
)

// Grammar is the version of the grammar that this code reads. It grows with what older code cannot read.
const Grammar = 1

// String returns the canonical form as it is stored: a line for each line of the definition, and after them what
// differs from the defaults: "zone Europe/Berlin", "dst skip", "start 2027-01-01T00:00:00Z", "end …".
func (s *Spec) String() string {
	d := s.Definition()
	lines := d.Lines
	setting := func(name, value string) { lines = append(lines, name+" "+value) }
	if d.Zone != "UTC" {
		setting("zone", d.Zone)
	}
	if d.DST != delaytask.DSTOnce {
		setting("dst", string(d.DST))
	}
	if !d.Start.IsZero() {
		setting("start", d.Start.Format(time.RFC3339))
	}
	if !d.End.IsZero() {
		setting("end", d.End.Format(time.RFC3339))
	}
	return strings.Join(lines, "\n")
}

// ParseText reads what String returns. It returns the errors of [Parse].
func ParseText(stored string) (*Spec, error) {
	var d delaytask.Spec
	for i, l := range strings.Split(stored, "\n") {
		name, value, _ := strings.Cut(l, " ")
		var err error
		switch name {
		case "zone":
			d.Zone = value
		case "dst":
			d.DST = delaytask.DST(value)
		case "start":
			d.Start, err = time.Parse(time.RFC3339, value)
		case "end":
			d.End, err = time.Parse(time.RFC3339, value)
		default:
			d.Lines = append(d.Lines, l)
		}
		if err != nil {
			return nil, &delaytask.SpecError{Line: i + 1, Reason: err.Error()}
		}
	}
	return Parse(d)
}
