package config

import "testing"

func TestDistanceCountsTypingErrors(t *testing.T) {
	t.Parallel()
	f := func(a, b string, want int) {
		t.Helper()
		if got := distance(a, b); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
		if got := distance(b, a); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", b, a, got, want)
		}
	}
	f("", "", 0)
	f("ttr", "", 3)
	f("ttr", "ttr", 0)
	f("ttr", "tttr", 1)
	f("ttr", "tar", 1)
	f("kitten", "sitting", 3)
	f("horizon", "workers", 5)
}

func TestNearestFindsWhatWasMeant(t *testing.T) {
	t.Parallel()
	f := func(word, want string) {
		t.Helper()
		if got, _ := nearest(Keys(), word); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
	f("retention.canceled", "retention.cancelled")
	f("node.hartbeat", "node.heartbeat")
	f("lookahead.evry", "lookahead.every")
	f("jitter", "backoff.jitter")
	f("heapcap", "heap_cap")
	f("x", "")
	f("", "")
}
