package push

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

func entry(id int64, app string, tags ...string) *target {
	return &target{Receiver: row.Receiver{ID: id, App: app, Tags: tags}}
}

func ids(all []*target) (list []int64) {
	for _, to := range all {
		list = append(list, to.ID)
	}
	return list
}

// Applications that take turns in saving must not meet the same address every time, nor must a directory that is made
// anew.
func TestEveryPairGoesRoundByItself(t *testing.T) {
	t.Parallel()
	receivers := []*target{entry(1, "a", "t"), entry(2, "a", "t", "u"), entry(3, "b", "t"), entry(4, "b", "t")}
	var d directory
	counts := map[int64]int{}
	for range 6 {
		d = newDirectory(receivers, d)
		for _, app := range []string{"a", "b"} {
			found := d.find("t", app)
			if len(found) != 2 || found[0].App != app || found[1].App != app || found[0].ID == found[1].ID {
				t.Fatalf("for %s of t: %v", app, ids(found))
			}
			counts[found[0].ID]++
		}
	}
	for id := int64(1); id <= 4; id++ {
		if counts[id] != 3 {
			t.Errorf("of 12 tasks %d got %d, want 3", id, counts[id])
		}
	}
	if found := d.find("t", ""); len(found) != 4 {
		t.Errorf("for nobody in particular: %v", ids(found))
	}
	for _, pair := range [][2]string{{"u", "b"}, {"t", "c"}, {"v", ""}, {"", ""}} {
		if found := d.find(pair[0], pair[1]); found != nil {
			t.Errorf("for %q of %q: %v", pair[1], pair[0], ids(found))
		}
	}
}

func TestManyUnservedTasksWaitLongerThanAFew(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var few pace
	for range 100 {
		if d := few.wait(now); d < leastWait || d > usualWait {
			t.Fatalf("one of a few waits %v", d)
		}
	}
	var many pace
	perSecond := map[time.Duration]int{}
	for range 100_000 {
		d := many.wait(now)
		if d < leastWait || d > longestWait {
			t.Fatalf("one of many waits %v", d)
		}
		perSecond[d/time.Second]++
	}
	for second, n := range perSecond {
		if most := 100_000 / 20; n > most {
			t.Errorf("%d come back in second %d, want at most %d", n, second, most)
		}
	}
	if d := many.wait(now.Add(time.Hour)); d > usualWait {
		t.Errorf("an hour later one waits %v", d)
	}
}
