package find

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/row"
)

// A forger who can read the keys may name any share of any tag.
func TestForgedSharesAreBounded(t *testing.T) {
	w := newWakeups(&deps{cfg: Config{Window: 2 * time.Second}})
	now := row.At(time.Now())
	for i := range 4 * wakeSpans {
		w.add(toRead{Notice: wake.Notice{Tag: "a", From: now, To: row.MaxTime, Share: i, Of: 1 << 16}}, now)
	}
	if turn, _ := w.turn(); len(turn) > wakeSpans {
		t.Errorf("%d spans wait", len(turn))
	}
}
