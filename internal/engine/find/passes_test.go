package find

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/scanner"
)

func TestManyNodesSpareAPassThatReadsPastAllRows(t *testing.T) {
	for _, c := range []struct{ nodes, takes, rest time.Duration }{
		{arm.ManyNodes - 1, time.Second, 0},
		{arm.ManyNodes, time.Millisecond, 1250 * time.Millisecond},
		{100, 4 * time.Millisecond, 20 * time.Second},
		{100, time.Second, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			pass := spared(scanner.Pass{Run: func(context.Context) error {
				time.Sleep(c.takes)
				return nil
			}}, func() time.Duration { return c.nodes })
			for range 2 {
				if !pass.Takes() {
					t.Errorf("%d nodes do not take a turn after their rest", c.nodes)
				}
				if err := pass.Run(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(max(c.rest-time.Nanosecond, 0))
				if taken := pass.Takes(); taken != (c.rest == 0) {
					t.Errorf("%d nodes, %v: a turn within the rest is taken: %v", c.nodes, c.takes, taken)
				}
				time.Sleep(time.Nanosecond)
			}
		})
	}
}
