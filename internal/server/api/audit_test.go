package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/wire"
)

// entries returns what the caller sees of the audit log, the oldest first.
func (s *site) entries(query string, header ...string) (lines []string) {
	s.TB.Helper()
	for _, e := range ok[wire.AuditPage](s, 200, "GET", "/v1/audit?"+query, "", header...).Entries {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %d", e.Who, e.Action, e.Target, e.Tag,
			e.Outcome, e.Tasks)))
		if e.Via != "api" || e.Ended.IsZero() {
			s.TB.Errorf("got %+v", e)
		}
	}
	slices.Reverse(lines)
	return lines
}

func TestChangesByCallersAreRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	shop := s.token("shop", "*", access.All)
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"t","key":"k","delay":"1h"}`, shop...).ID.String()
	byID, receiver := "/v1/tasks/"+id, "/v1/receivers"
	registered := ok[wire.Receiver](s, 201, "POST", receiver, strings.Replace(register, `"a","b"`, `"a"`, 1), shop...)
	address := registered.Address
	want := []string{"shop receiver.save " + registered.App + " " + address + " a done 0"}
	const spec = `{"lines":["@yearly"],"tag":"t"}`
	for _, c := range []struct{ method, path, body, want string }{
		{"PATCH", byID, `{"delay":"2h"}`, "task.reschedule " + id + " t done 1"},
		{"PATCH", "/v1/tags/t/keys/k", `{"body":1}`, "task.body " + id + " t done 1"},
		{"POST", byID + "/retry", "", "task.retry " + id + " t refused 0"},
		{"DELETE", byID, "", "task.cancel " + id + " t done 1"},
		{"POST", "/v1/tags/u/pause", "", "tag.pause  u done 0"},
		{"POST", "/v1/tags/u/resume", "", "tag.resume  u done 0"},
		{"PUT", "/v1/schedules/s", spec, "schedule.save s t done 0"},
		{"POST", "/v1/schedules/s/pause", `{"reason":"r"}`, "schedule.pause s t done 0"},
		{"POST", "/v1/schedules/s/resume", "", "schedule.resume s t done 0"},
		{"POST", "/v1/schedules/s/reset", "", "schedule.reset s t done 0"},
		{"POST", "/v1/schedules/s/skip", "", "schedule.skip s t done 0"},
		{"POST", "/v1/schedules/s/trigger", "", "schedule.run s t done 0"},
		{"POST", "/v1/schedules/s/backfill", `{"from":1600000000,"to":1700000000}`, "schedule.backfill s t done 0"},
		{"DELETE", "/v1/schedules/s", "", "schedule.delete s t done 0"},
		{"DELETE", receiver + "/" + registered.ID.String(), "",
			"receiver.delete " + registered.App + " " + address + " a done 0"},
		// What changes nothing, or is no change by people, is not recorded.
		{"POST", receiver + "/424242/heartbeat", "", ""}, {"DELETE", "/v1/tasks/424242", "", ""},
		{"PATCH", byID, `{}`, ""}, {"POST", "/v1/tags/no+tag/pause", "", ""}, {"DELETE", "/v1/schedules/none", "", ""},
		{"PUT", "/v1/schedules/no+name", spec, ""}, {"POST", "/v1/wake", `{"tags":["t"]}`, ""},
	} {
		s.Call(c.method, c.path, c.body, shop...)
		if c.want != "" {
			want = append(want, "shop "+c.want)
		}
	}
	if got := s.entries("", shop...); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	details := ok[wire.AuditPage](s, 200, "GET", "/v1/audit?action=task.reschedule&who=shop&tag=t&limit=1", "", shop...)
	if len(details.Entries) != 1 || details.Entries[0].Detail != "delay=2h0m0s" {
		t.Errorf("got %+v", details)
	}
	next := ok[wire.AuditPage](s, 200, "GET", "/v1/audit?limit=3", "", shop...).Next
	if got := s.entries("before="+next.String(), shop...); !slices.Equal(got, want[:len(want)-3]) {
		t.Errorf("before %d there are\n%s", next, strings.Join(got, "\n"))
	}
	s.Want(400, wire.CodeInvalidID, "GET", "/v1/audit?before=yesterday", "", shop...)
	s.Want(400, wire.CodeInvalidOption, "GET", "/v1/audit?limit=-1", "", shop...)
}

func TestEntriesAreSeenByThoseOfTheirTag(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, mine := s.token("all", "*", access.Audit), s.token("mine", "my.*,a", access.Audit)
	operator := s.token("op", "*", access.Operate, access.Register)
	for _, tag := range []string{"theirs", "my.own"} {
		s.Want(204, "", "POST", "/v1/tags/"+tag+"/pause", "", operator...)
	}
	s.Want(201, "", "POST", "/v1/receivers", register, operator...) // of two tags
	if got := s.entries("", all...); len(got) != 3 {
		t.Errorf("of all tags: %q", got)
	}
	if got := s.entries("", mine...); !slices.Equal(got, []string{"op tag.pause  my.own done 0"}) {
		t.Errorf("of some tags: %q", got)
	}
	s.Want(403, wire.CodeForbidden, "GET", "/v1/audit?tag=theirs", "", mine...)
	s.Want(403, wire.CodeForbidden, "GET", "/v1/audit", "", operator...)
}

func TestWithoutAnEntryNothingIsChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) {
		broken := faultstore.New(core.Of(c.Scheduler).Store(), faultstore.Method("BeginAudit", 0, faultstore.Before))
		c.Audit = audit.New(audit.Config{Store: broken, Log: c.Log})
	})
	id := s.Save(`{"tag":"t","delay":"1h"}`).ID
	p := s.Want(503, wire.CodeNotRecorded, "DELETE", "/v1/tasks/"+id.String(), "")
	s.Want(503, wire.CodeNotRecorded, "POST", "/v1/tags/t/pause", "")
	if got := s.Task(id); got.Status != "pending" || strings.Contains(p.Text, "fault on purpose") ||
		!strings.Contains(s.logged.String(), "fault on purpose") {
		t.Errorf("the task is %s; the answer is %s, the log %s", got.Status, p.Text, s.logged)
	}
	if tags := ok[wire.TagList](s, 200, "GET", "/v1/tags", ""); strings.Contains(fmt.Sprint(tags), "true") {
		t.Errorf("a tag is paused: %+v", tags)
	}
}
