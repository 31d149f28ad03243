package cluster

import (
	"sync"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// Three schedulers, each on a member of its own, save and run; one member is killed in the middle and comes back.
func TestEveryMemberIsWrittenAndOneIsKilled(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.Galera, dbtest.Group} {
		t.Run(string(kind), func(t *testing.T) {
			c := dbtest.NewMortalCluster(t, kind, false)
			d := c.Database(t)
			l := newLedger()
			schedulers := make([]*delaytask.Scheduler, len(d.Members))
			var wg sync.WaitGroup
			for i, dsn := range d.Members {
				wg.Go(func() { schedulers[i] = open(t, dsn, l.process) }) // all of them migrate
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			watch(t, d)
			for _, s := range schedulers {
				start(t, s)
			}
			done := make(chan struct{})
			for _, s := range schedulers {
				wg.Go(func() { l.save(t, s, done) })
			}
			victim := len(d.Members) - 1
			for range 2 {
				l.more(t, 100)
				c.Kill(t, victim)
				l.more(t, 100)
				c.Rejoin(t, victim)
			}
			l.more(t, 100)
			close(done)
			wg.Wait()
			l.audit(t, d.Members)
		})
	}
}
