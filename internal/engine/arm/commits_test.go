package arm

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func TestATransactionThatEndsDuringALookIsLookedForAtOnce(t *testing.T) {
	c := newCommits(nil, nil)
	d := row.Due{ID: 1 << 40, Tag: "a", Due: row.At(time.Now())}
	c.open = []uncommitted{{due: d, wait: longestCommitWait, until: time.Now().Add(time.Minute)}}
	c.turn()
	c.Committed([]int64{d.ID})
	if !c.looking[d.ID] {
		t.Error("it is looked for after the longest wait")
	}
}
