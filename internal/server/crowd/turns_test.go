package crowd

import "testing"

func TestACallerGetsAsManyTurnsAsItLeavesFree(t *testing.T) {
	turns := NewTurns(16)
	var last func()
	taken := func(caller string) (n int) {
		for {
			leave, ok := turns.Take(caller, 1)
			if !ok {
				return n
			}
			n, last = n+1, leave
		}
	}
	for _, want := range []struct {
		caller string
		turns  int
	}{{"weak", 8}, {"busy", 4}, {"other", 2}, {"late", 1}, {"last", 1}, {"none", 0}} {
		if got := taken(want.caller); got != want.turns {
			t.Errorf("%s has got %d turns, want %d", want.caller, got, want.turns)
		}
	}
	last()
	if got := taken("weak"); got != 0 {
		t.Errorf("who has most got %d more", got)
	}
	if got := taken("none"); got != 1 {
		t.Errorf("who has none got %d", got)
	}
}
