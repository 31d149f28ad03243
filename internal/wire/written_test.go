package wire

import (
	"testing"
	"time"
)

func TestDurationsAreReadAndWritten(t *testing.T) {
	t.Parallel()
	f := func(s string, want time.Duration, wantText string) {
		t.Helper()
		got, err := ParseDuration(s)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", s, got, err, want)
		}
		if text := FormatDuration(got); text != wantText {
			t.Errorf("FormatDuration(%v) = %q, want %q", got, text, wantText)
		}
	}
	f("0", 0, "0s")
	f("0d", 0, "0s")
	f("30s", 30*time.Second, "30s")
	f("500ms", 500*time.Millisecond, "500ms")
	f("90s", 90*time.Second, "1m30s")
	f("10m", 10*time.Minute, "10m")
	f("1h", time.Hour, "1h")
	f("1h30m", 90*time.Minute, "1h30m")
	f("1h5s", time.Hour+5*time.Second, "1h0m5s")
	f("7d", 7*day, "7d")
	f("168h", 7*day, "7d")
	f("1d12h", 36*time.Hour, "1d12h")
	f("2d1ns", 2*day+1, "2d1ns")
	f("36500d", 36500*day, "36500d")
}

func TestDurationsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "d", "30", "s", "-1s", "-7d", "+7d", "1d-5h", "1d+5h", "1.5d", "7D", "1h7d", "1d2d", "106752d",
		"99999999999999999999d", "2562048h", "106751d24h", "7 d", "NaN", "٣d", "<nil>",
	} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", s, d)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"7d", "1d12h", "30s", "0", "-1s", "1.5h", "9223372036854775807ns", "d", "1d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("ParseDuration(%q) = %v", s, d)
		}
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d {
			t.Fatalf("%q is %v, written %q, read back %v, %v", s, d, FormatDuration(d), again, err)
		}
	})
}
