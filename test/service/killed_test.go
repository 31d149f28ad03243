package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	killedTTR      = 4 * time.Second // long enough for all to be handed out within it, also by a slow machine
	killedTasks    = 600
	killedFinished = 100 // of them, before the kill
)

// collect pops until there are n tasks. Further parameters of the pop may be given.
func (s *server) collect(tag string, n int, more string) (tasks []wire.Popped) {
	s.t.Helper()
	for given := time.Now().Add(patience); len(tasks) < n; {
		if time.Now().After(given) {
			s.t.Fatalf("only %d of %d tasks were handed out", len(tasks), n)
		}
		a := s.call("POST", fmt.Sprintf("/v1/tags/%s/pop?wait=5s&max=%d%s", tag, n, more), "")
		if a.status != 204 {
			tasks = append(tasks, as[wire.PopReply](s.t, a, 200).Tasks...)
		}
	}
	return tasks
}

// finishAll returns how many tasks were answered with each code; "" is done, and goes into the journal.
func (s *server) finishAll(tasks []wire.Popped, journal map[wire.ID]int) map[string]int {
	s.t.Helper()
	var f wire.FinishBatch
	for _, task := range tasks {
		f.Tokens = append(f.Tokens, task.Token)
	}
	body, err := json.Marshal(f)
	if err != nil {
		s.t.Fatal(err)
	}
	codes := map[string]int{}
	for i, r := range as[wire.FinishBatchReply](s.t, s.call("POST", "/v1/tasks/finish", string(body)), 200).Results {
		if codes[r.Code]++; r.Code == "" {
			journal[tasks[i].ID]++
		}
	}
	return codes
}

func TestTasksOfAKilledServerAreDeliveredAgain(t *testing.T) {
	each(t, func(t *testing.T, db dbtest.Database) {
		first := serve(t, db)
		batch := strings.Repeat(fmt.Sprintf(`{"tag":"t","ttr":"%v"}`+"\n", killedTTR), killedTasks)
		first.call("POST", "/v1/tasks/batch", batch, "Content-Type", "application/x-ndjson").wants(t, 200, "")
		began := time.Now()
		before := first.collect("t", killedTasks, "")
		done, unfinished := before[:killedFinished], before[killedFinished:]
		journal := map[wire.ID]int{}
		if codes := first.finishAll(done, journal); codes[""] != killedFinished {
			t.Fatalf("finished before the kill: %v", codes)
		}
		first.kill()

		second := serve(t, db)
		after := second.collect("t", len(unfinished), "&ttr=1m")
		if took := time.Since(began); took < killedTTR {
			t.Errorf("delivered again %v after the first pop, before the leases were over", took)
		}
		t.Logf("all were delivered again %v after the first pop", time.Since(began))
		second.finish(unfinished[0]).wants(t, 409, wire.CodeLeaseLost)
		if codes := second.finishAll(unfinished, journal); codes[wire.CodeLeaseLost] != len(unfinished) {
			t.Errorf("old tokens: %v", codes)
		}
		if codes := second.finishAll(after, journal); codes[""] != len(after) {
			t.Errorf("new tokens: %v", codes)
		}

		var cursor string
		stored := 0
		for {
			page := as[wire.Page](t, second.call("GET", "/v1/tasks?tag=t&limit=500&cursor="+cursor, ""), 200)
			for _, task := range page.Tasks {
				if stored++; task.Status != "completed" || journal[task.ID] != 1 {
					t.Errorf("task %s is %s and was completed %d times", task.ID, task.Status, journal[task.ID])
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if stored != killedTasks || len(journal) != killedTasks {
			t.Errorf("%d rows and %d completions, want %d", stored, len(journal), killedTasks)
		}
	})
}
