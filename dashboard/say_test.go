package dashboard

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
)

// parameters are the numbers of the parameters that a form has.
func parameters(form string) []int {
	var all []int
	verbs := regexp.MustCompile(`%(?:\[(\d)\])?[sdv]`).FindAllStringSubmatch(form, -1)
	for i, verb := range verbs {
		n, err := strconv.Atoi(verb[1])
		if err != nil {
			n = i + 1
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Every sentence has the parameters of its English form in every language, and says nothing in English in another one.
func TestSentencesAreOfOneLanguage(t *testing.T) {
	t.Parallel()
	for code, english := range sentence.English {
		_, many, counted := strings.Cut(english, "|")
		if !counted {
			many = english
		}
		for lang := range languages {
			form := texts[said+string(code)][lang]
			_, other, counted := strings.Cut(form, "|")
			if !counted {
				other = form
			}
			if !slices.Equal(parameters(many), parameters(other)) {
				t.Errorf("%s: the parameters of %q differ from %q", code, form, english)
			}
		}
	}
	for key, text := range texts {
		if found := englishIn(text["zh"]); found != "" {
			t.Errorf("%s: %q is English in %q", key, found, text["zh"])
		}
	}
}

// names are English words that a Chinese text may have: commands, statements and settings.
var names = regexp.MustCompile(`delaytask( [a-z]+)*|KILL %s|POST /v1/receivers|config\.yaml`)

// englishIn finds English words that stand side by side.
func englishIn(text string) string {
	text = names.ReplaceAllString(text, "，")
	return regexp.MustCompile(`[A-Za-z']{2,},? [a-z']+`).FindString(text)
}

// Sentences have times, numbers and durations as the page has them, and nothing that looks like a secret.
func TestSentencesAreInTheFormOfThePage(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("Shanghai", 8*3600)
	v := &view{
		settings:  settings{Lang: "zh", zone: zone},
		dashboard: &dashboard{o: Options{Redact: func(tag, s string) string { return tag + " masked" }}},
	}
	due := time.Date(2027, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	for want, s := range map[string]sentence.Sentence{
		"任务于 2027-01-02 11:04:05.006 到期。": sentence.Of(sentence.TaskNotDue, due),
		"10 分钟内有 ≥12,000 个任务最终失败，最常见的错误：a masked": sentence.Of(sentence.MostOften,
			sentence.Of(sentence.Failing, sentence.Count{N: 12000, AtLeast: true}), sentence.Quote("password=x")),
		"首次执行延误 1.5 s：该 tag 当时已暂停。": sentence.Of(sentence.TaskLate, 1500*time.Millisecond,
			sentence.Of(sentence.Late+"paused")),
		"本次执行是任务 911754261296348400。": sentence.Of(sentence.ScheduleRun, sentence.ID(911754261296348400)),
	} {
		if got := v.Say("a", s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	text := sentence.Text{sentence.Of(sentence.TaskPaused, "a"), sentence.Of(sentence.TaskLocked)}
	if got := v.SayAll("a", text); got != "tag a 已暂停。其数据行被另一个事务锁定。" {
		t.Error(got)
	}
}

// Every code that a page shows by its text has one.
func TestEveryCodeHasATextOnPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, kind, prefix string }{
		{"../report/overview.go", "FindingCode", "overview.finding."}, {"../report/overview.go", "OverviewPart",
			"overview.part."},
		{"../report/overview.go", "OverviewTrouble", "overview.trouble."}, {"../late.go", "LateReason", "late."},
		{"../schedule.go", "Outcome", "schedule.outcome."}, {"../schedule.go", "ScheduleState", "schedules.state."},
	} {
		for _, m := range find(t, c.file, `\s`+c.kind+`\s+= "(\w+)"`) {
			if texts[c.prefix+m[1]] == nil {
				t.Errorf("the %s %s has no text", c.kind, m[1])
			}
		}
	}
}
