package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// A page in Chinese has no English sentence: not of what needs attention, of why something stands as it does, or of
// what was refused.
func TestChinesePagesHaveNoEnglishSentence(t *testing.T) {
	t.Parallel()
	s := open(t)
	waiting, cancelled := s.save("order.close"), s.save("order.close")
	s.put(1001, "mail.send", row.Change{To: row.Pending})
	s.put(1002, "mail.send", row.Change{To: row.Failed, ErrorStack: "refused"})
	s.put(1003, "mail.send", row.Change{To: row.Executing, Executor: row.Executor{Process: 9, Claim: 1}})
	_, err := s.Cancel(t.Context(), delaytask.ID(cancelled))
	servertest.OK(t, err)
	servertest.OK(t, s.Pause(t.Context(), "order.close"))
	for _, name := range []string{"nightly", "daily"} {
		_, err = s.SaveSchedule(t.Context(), name, delaytask.Cron("30 2 * * *", "Europe/Berlin"), "books", "")
		servertest.OK(t, err)
	}
	servertest.OK(t, s.PauseSchedule(t.Context(), "nightly"))

	task, zh := fmt.Sprintf("/tasks/%d", waiting), []string{"Accept-Language", "zh-CN"}
	for path, want := range map[string]string{
		"/":                                 "有 1 个任务逾期，而且没有存活的进程处理这个 tag。",
		task:                                "tag order.close 已暂停。没有存活的节点处理 tag order.close。",
		"/tasks/1001":                       "没有存活的节点处理 tag mail.send。",
		"/tasks/1002":                       " 最终失败（第 ",
		"/tasks/1003":                       "只要有节点存活，几秒内就会收回。",
		fmt.Sprintf("/tasks/%d", cancelled): " 取消。",
		"/tasks/1":                          "没有这个任务",
		"/tasks?late_by=soon":               "请填写时长",
		"/tasks?key=k":                      "按键查找须同时指定 tag",
		"/tasks?cursor=x":                   "分页位置不合法",
		"/schedules/daily":                  "下一个触发点是 ",
		"/schedules/nightly":                "暂停：未说明原因。",
		"/schedules/none":                   "没有这个名称的周期计划",
		"/nodes/999":                        "没有这个节点",
		"/receivers/1":                      "没有这个接收端",
		"/nowhere":                          "没有这个页面",
		"/find?q=":                          "请填写任务编号",
		"/load?span=1y":                     "应为 1h、24h 或 30d",
		"/audit?before=x":                   "请从首页重新开始",

		"/schedules/nightly?tick=2020-01-01T00:00:00Z": "按现在的定义，这一时刻没有触发点",

		"/tasks": "", "/tags": "", "/tags/mail.send": "", "/load": "", "/failures": "", "/nodes": "", "/receivers": "",
		"/schedules": "", "/audit": "", "/bulk?verb=cancel&status=pending": "", "/bulk/none": "",
	} {
		onlyChinese(t, path, s.get(path, zh...), want)
	}
	for path, c := range map[string]struct {
		form url.Values
		want string
	}{
		task + "/retry":           {nil, "只能重试失败的任务"},
		task + "/reschedule":      {url.Values{"at": {"later"}}, "请填写时间"},
		task + "/body":            {url.Values{"body": {"a"}, "version": {"9"}}, "任务在本页显示之后发生了变化"},
		"/tasks/1002/cancel":      {nil, "任务已经结束"},
		"/tasks":                  {url.Values{"verb": {"cancel"}}, "请选择 1 到 1000 个任务"},
		"/settings":               {url.Values{"zone": {"Mars/Olympus"}}, "请填写时区名称"},
		"/schedules/daily/resume": {nil, "周期计划当前的状态不允许此操作"},
		"/schedules/nightly/backfill": {
			url.Values{"from": {"2039-01-01"}, "to": {"2039-01-09"}, "at_once": {"1"}}, "这段时间不能回填",
		},
	} {
		a := s.post(path, c.form, zh...)
		if a.status < http.StatusBadRequest {
			t.Errorf("%s is not refused", path)
		}
		onlyChinese(t, path, a, c.want)
	}
}

// put stores a task that was due an hour ago, and changes it.
func (s *site) put(id int64, tag string, to row.Change) {
	s.t.Helper()
	store, due := core.Of(s.Scheduler).Store(), row.At(time.Now().Add(-time.Hour))
	task := row.Row{ID: id, Tag: tag, Status: row.Pending, TTR: time.Minute, Expected: due, Due: due}
	servertest.OK(s.t, store.Insert(s.t.Context(), nil, []row.Row{task}))
	to.ID, to.From, to.Due, to.Expected = id, row.Pending, due, due
	if to.To != row.Pending {
		_, err := store.Update(s.t.Context(), nil, []row.Change{to})
		servertest.OK(s.t, err)
	}
}

var (
	// others is what a program has written, and what is typed into a shell.
	others = regexp.MustCompile(`(?s)<(code|pre|script|select)\b.*?</(code|pre|script|select)>`)
	marks  = regexp.MustCompile(`<[^>]*>`)
	names  = regexp.MustCompile(`tag [a-z.]+|delaytask [a-z]+( [a-z]+)?`)
	words  = regexp.MustCompile(`[A-Za-z']{2,},? [a-z']{2,}`)
)

// onlyChinese reports a text that the page lacks, and English words that stand side by side.
func onlyChinese(t *testing.T, path string, a answer, want string) {
	t.Helper()
	a.has(t, a.status, want)
	text := marks.ReplaceAllString(others.ReplaceAllString(a.body, "\n"), "\n")
	for _, found := range words.FindAllString(names.ReplaceAllString(html.UnescapeString(text), ""), -1) {
		t.Errorf("%s has %q", path, found)
	}
}
