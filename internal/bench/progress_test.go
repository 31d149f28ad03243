package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressGoesOnWhileSomethingIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		p := Progress{Name: "save", Done: time.Minute, Total: time.Hour}
		err := p.during(t.Context(), func(p Progress) { told = append(told, p.Done) }, time.Second, func(context.Context) error {
			time.Sleep(2100 * time.Millisecond) // longer than expected
			return nil
		})
		if err != nil || len(told) != 11 || told[0] != time.Minute || told[10] != time.Minute+time.Second {
			t.Errorf("told %v, %v", told, err)
		}
	})
}
