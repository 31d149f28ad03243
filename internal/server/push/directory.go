package push

import (
	"slices"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor/webhook"
)

// receiver is an address that can be called.
type receiver struct {
	row.Worker
	signing []webhook.Secret
}

// directory is who serves what at one moment: by tag, then by application. Under the application "" stand all of the tag.
type directory map[string]map[string]*circle

// circle is those among whom one pair of tag and application goes round.
type circle struct {
	receivers []*receiver
	turn      *atomic.Uint64
}

// newDirectory goes on with the turns of the directory before it: it is made anew all the time.
func newDirectory(receivers []*receiver, before directory) directory {
	d := directory{}
	for _, to := range receivers {
		for _, tag := range to.Tags {
			if d[tag] == nil {
				d[tag] = map[string]*circle{}
			}
			for _, app := range []string{"", to.App} {
				c := d[tag][app]
				if c == nil {
					c = &circle{turn: new(atomic.Uint64)}
					if old := before[tag][app]; old != nil {
						c.turn = old.turn
					}
					d[tag][app] = c
				}
				c.receivers = append(c.receivers, to)
			}
		}
	}
	return d
}

// find returns those who may get a task of the tag and the application, "" when it has none, in the order in which to try them.
func (d directory) find(tag, app string) []*receiver {
	c := d[tag][app]
	if c == nil {
		return nil
	}
	first := int((c.turn.Add(1) - 1) % uint64(len(c.receivers)))
	return slices.Concat(c.receivers[first:], c.receivers[:first])
}

// receivers returns those of the workers that can be called, and why others cannot.
func (r *Registry) receivers(workers []row.Worker, now row.Time) (all []*receiver, closed map[int64]error) {
	closed = map[int64]error{}
	for _, w := range workers {
		to := &receiver{Worker: w}
		if w.Secret != nil {
			s, err := r.open(w)
			if err == nil {
				to.signing, err = s.signing(now)
			}
			if err != nil { // its calls would be refused, or worse, be taken without a signature
				closed[w.ID] = err
				continue
			}
		}
		all = append(all, to)
	}
	return all, closed
}
