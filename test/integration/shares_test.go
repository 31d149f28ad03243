//go:build unix

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// A node that serves nothing watches, as an operator does.
func TestSharesMoveWhenANodeJoinsLeavesOrDies(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		operator := open(t, d)
		shares := func(want ...string) {
			t.Helper()
			begun := time.Now()
			servertest.Eventually(t, fmt.Sprint("shares are ", want), func() bool {
				return slices.Equal(sharesOf(t, operator, "t"), want)
			})
			within(t, 4*time.Second, begun, time.Now(), fmt.Sprint("shares ", want))
		}
		join := func() *scheduler.Scheduler {
			s := open(t, d)
			serve(t, s, "t", nothing)
			return s
		}
		shares()
		join()
		shares("1 of 1")
		leaves := join()
		shares("1 of 2", "2 of 2")
		c := serving(t, d)
		shares("1 of 3", "2 of 3", "3 of 3")
		c.Kill()
		shares("1 of 2", "2 of 2")
		servertest.Stop(t, leaves)
		shares("1 of 1")
	})
}

// sharesOf returns the nodes' shares of the tag's tasks, in order.
func sharesOf(t *testing.T, s *scheduler.Scheduler, tag string) (shares []string) {
	t.Helper()
	nodes, err := s.Nodes(t.Context())
	servertest.OK(t, err)
	for _, n := range nodes {
		for _, share := range n.Shares {
			if share.Tag == tag && share.Position > 0 {
				shares = append(shares, fmt.Sprintf("%d of %d", share.Position, share.Total))
			}
		}
	}
	slices.Sort(shares)
	return shares
}

func TestTasksOfAProcessThatServesNothingAreOnTime(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		c, s := spawn(t, d), open(t, d)
		p, _ := ids()
		serve(t, s, "t", p)
		warm(t, s, "t")
		saved := map[time.Duration]int64{}
		for _, delay := range []time.Duration{3 * time.Second, 1500 * time.Millisecond, 500 * time.Millisecond, 0} {
			saved[delay] = c.save("t", delay)
		}
		for delay, id := range saved {
			task := reaches(t, s, id, delaytask.Completed)
			within(t, time.Second, task.Expected, task.Started, "lateness with a delay of "+delay.String())
		}
	})
}
