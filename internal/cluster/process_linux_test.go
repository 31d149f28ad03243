package cluster

import "testing"

func TestStartTimeIsReadBehindTheName(t *testing.T) {
	t.Parallel()
	const tail = " S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3\n"
	for _, name := range []string{"delaytask", "a b", ") S 1 (", "((("} {
		if got, err := parseStartTime([]byte("42 (" + name + ")" + tail)); err != nil || got != 987654 {
			t.Errorf("program %q: start time %d, %v; want 987654", name, got, err)
		}
	}
	for _, bad := range []string{"", "42 (x) S 1 2", "42 (x) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 soon 1 2"} {
		if got, err := parseStartTime([]byte(bad)); err == nil {
			t.Errorf("%q gave %d, want an error", bad, got)
		}
	}
}
