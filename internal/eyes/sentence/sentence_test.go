package sentence

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every code has an English form, and so has every reason, state and status that a code is completed with.
func TestEveryCodeHasAForm(t *testing.T) {
	codes := map[Code]bool{}
	for _, s := range []struct {
		file, constant string
		before         Code
	}{
		{"english.go", `Code = "([a-z_.]+)"`, ""},
		{"../../../late.go", `LateReason = "(\w+)"`, Late},
		{"../../../schedule.go", `ScheduleState = "(\w+)"`, State},
	} {
		source, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(s.constant).FindAllStringSubmatch(string(source), -1)
		if len(found) == 0 {
			t.Errorf("%s has no %s", s.file, s.constant)
		}
		for _, m := range found {
			if !strings.HasSuffix(m[1], ".") {
				codes[s.before+Code(m[1])] = true
			}
		}
	}
	for code := range codes {
		if English[code] == "" {
			t.Errorf("%s has no form", code)
		}
	}
}

func TestSentencesAreWrittenWithTheirParameters(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("", 3600))
	for want, s := range map[string]Sentence{
		"It is due at 2027-01-02T02:04:05.006Z.": Of(TaskNotDue, at),
		"1 task is leased to it":                 Of(LeasedToIt, Count{N: 1}),
		"1 or more tasks are leased to it":       Of(LeasedToIt, Count{1, true}),
		"20 tasks have failed within 10 min, most often: 9 % full|": Of(MostOften, Of(Failing, Count{N: 20}),
			Quote("9 % full|")),
		"It started 1.5s late: its tag was paused.": Of(TaskLate, 1500*time.Millisecond, Of(Late+"paused")),
		"Its run is task 911754261296348400.":       Of(ScheduleRun, ID(911754261296348400)),
	} {
		if got := s.English(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	text := Text{Of(TaskPaused, "a"), Of(TaskLocked)}
	if got := text.English(); got != "The tag a is paused. Its row is locked by another transaction." {
		t.Error(got)
	}
}
