package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// collect pops until there are n tasks. Further parameters of the pop may be given.
func (s *server) collect(n int, more string) (tasks []wire.Popped) {
	s.TB.Helper()
	servertest.Eventually(s.TB, "all are handed out", func() bool {
		a := s.Call("POST", fmt.Sprintf("/v1/tags/t/pop?wait=5s&max=%d%s", n, more), "")
		if a.Status != 204 {
			var popped wire.PopReply
			a.Read(s.TB, &popped)
			tasks = append(tasks, popped.Tasks...)
		}
		return len(tasks) >= n
	})
	return tasks
}

// finishAll requires the code for every token; "" means done.
func (s *server) finishAll(tasks []wire.Popped, code string) {
	s.TB.Helper()
	tokens := make([]string, len(tasks))
	for i, task := range tasks {
		tokens[i] = `"` + task.Token + `"`
	}
	body := `{"tokens":[` + strings.Join(tokens, ",") + `]}`
	for i, r := range servertest.Ask[wire.FinishBatchReply](&s.Client, 200, "POST", "/v1/tasks/finish", body).Results {
		if r.Code != code {
			s.TB.Errorf("task %s is answered %q %s, want %q", tasks[i].ID, r.Code, r.Detail, code)
		}
	}
}

func TestTasksOfAKilledServerAreDeliveredAgain(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		const all, finished, ttr = 600, 100, 20 * time.Second // a busy machine hands them out in a few seconds
		first := serve(t, db)
		batch := strings.Repeat(fmt.Sprintf(`{"tag":"t","ttr":"%v"}`+"\n", ttr), all)
		first.Want(200, "", "POST", "/v1/tasks/batch", batch, "Content-Type", "application/x-ndjson")
		began := time.Now()
		before := first.collect(all, "")
		first.finishAll(before[:finished], "")
		first.Kill()

		second := serve(t, db)
		after := second.collect(all-finished, "&ttr=1m")
		took := time.Since(began)
		if t.Logf("all were delivered again %v after the first pop", took); took < ttr {
			t.Error("that was before the leases were over")
		}
		second.finishAll(before[finished:], wire.CodeLeaseLost)
		second.finishAll(after, "")
		again := map[wire.ID]bool{}
		for _, task := range after {
			again[task.ID] = true
		}
		stored := second.Want(200, "", "GET", "/v1/stats", "").Text
		if len(again) != all-finished || !strings.Contains(stored,
			fmt.Sprintf(`"tag":"t","counts":{"completed":%d}`, all)) {
			t.Errorf("%d were delivered again, stored are %s", len(again), stored)
		}
	})
}
