//go:build !sabotage

package sabotage

import "testing"

func TestWithoutTheTagEveryCheckStands(t *testing.T) {
	t.Setenv("DELAYTASK_SABOTAGE", string(Fence))
	for _, c := range Checks {
		if Off(c) {
			t.Errorf("%s is removed", c)
		}
	}
}
