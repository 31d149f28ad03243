package bench

import "errors"

// ErrInvalidOptions is returned by [Run] for a name that no measurement has.
var ErrInvalidOptions = errors.New("invalid options of the benchmark")

// Options say what to measure, and on which database.
type Options struct {
	// DSN names a server whose user may create databases, or a SQLite file in whose folder there is room. The named
	// database itself is neither read nor changed.
	DSN     string
	Quick   bool     // fewer measurements, and shorter ones
	Repeats int      // turns of each measurement, of which figures are medians; default: what the measurement says
	Only    []string // names of measurements, or groups of them such as "raw"; default: all that are not apart
	Budget  bool     // the drain also says where its time goes
	Scale   float64  // multiplies durations and numbers of tasks: for tests; default: 1

	// Progress is called before each turn and at the end, with the number of turns that are done.
	Progress func(done, total int, next string)
}
