package dashboard

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
)

// Every code that an error of the library has in the API, and every one of pages alone, has a text in every language.
func TestEveryErrorHasAText(t *testing.T) {
	t.Parallel()
	codes := map[string]string{}
	for _, m := range find(t, "../internal/wire/problem.go", `\b(Code\w+) += "(\w+)"`) {
		codes[m[1]] = m[2]
	}
	used := []string{"invalid"}
	for _, file := range []string{"../internal/wire/errors.go", "../internal/operate/problem.go"} {
		for _, m := range find(t, file, `\b(Code\w+)\}`) {
			used = append(used, codes[m[1]])
		}
	}
	for _, a := range answers {
		used = append(used, a.code)
	}
	for _, code := range used {
		for lang := range languages {
			if texts[errorText+code][lang] == "" {
				t.Errorf("the error %q has no text in %s", code, lang)
			}
		}
	}
}

func find(t *testing.T, file, pattern string) [][]string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1)
	if len(found) == 0 {
		t.Errorf("%s has no %s", file, pattern)
	}
	return found
}

func TestErrorsAreInTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	en, zh := &view{settings: settings{Lang: "en"}}, &view{settings: settings{Lang: "zh"}}
	for _, c := range []struct {
		err     error
		en, zh  string
		refused int
	}{
		{fmt.Errorf("%w: there is no order x", delaytask.ErrInvalidOption),
			"not valid. invalid option: there is no order x.", "条件不合法或互相矛盾", 400},
		{invalid{field: "typed", want: "want.typed", arg: "3"},
			`typed: type "3" to confirm; nothing was changed.`, `输入无效（typed）：请输入 "3" 以确认；没有更改任何内容。`, 400},
		{invalid{field: "at", want: "want.time"}, "at: want a time", "请填写时间", 400},
		{delaytask.ErrScheduleBusy, "The schedule does not allow this now", "上一次执行尚未结束", 409},
		{os.ErrClosed, "The database does not answer", "数据库没有响应", 503},
	} {
		if got := en.Failure(c.err); !strings.Contains(got, c.en) {
			t.Errorf("%v: got %q", c.err, got)
		}
		got := zh.Failure(c.err)
		if !strings.Contains(got, c.zh) || strings.Contains(got, "%!") || englishIn(got) != "" {
			t.Errorf("%v: got %q", c.err, got)
		}
		if status := statusOf(c.err); status != c.refused {
			t.Errorf("%v: status %d", c.err, status)
		}
	}
}
