package bench

import (
	"time"

	"github.com/delaytask/delaytask/internal/lateness"
)

// addPercentiles adds p50, p99 and whatever else is asked for, each under the key and its name.
func (f *figures) addPercentiles(key string, durations []time.Duration, ranks ...rank) {
	for _, r := range ranks {
		f.add(key+"."+r.name, milliseconds(lateness.Percentile(durations, r.of)))
	}
}

// rank is a percentile and what it is called at the end of a key.
type rank struct {
	name string
	of   float64
}

var (
	p50  = rank{"p50_ms", 50}
	p99  = rank{"p99_ms", 99}
	p999 = rank{"p999_ms", 99.9}
	most = rank{"max_ms", 100}
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
