package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	killedTasks    = 600
	killedFinished = 100 // of them, before the kill
)

// killedTTRs are the leases that are tried: the next one where the machine was too slow to hand out all tasks within
// the last.
var killedTTRs = []time.Duration{4 * time.Second, 15 * time.Second, time.Minute}

// collect pops until there are n tasks. Further parameters of the pop may be given.
func (s *server) collect(tag string, n int, more string) (tasks []wire.Popped) {
	s.TB.Helper()
	for given := time.Now().Add(patience); len(tasks) < n; {
		if time.Now().After(given) {
			s.TB.Fatalf("only %d of %d tasks were handed out", len(tasks), n)
		}
		a := s.Call("POST", fmt.Sprintf("/v1/tags/%s/pop?wait=5s&max=%d%s", tag, n, more), "")
		if a.Status != 204 {
			var popped wire.PopReply
			a.Read(s.TB, &popped)
			tasks = append(tasks, popped.Tasks...)
		}
	}
	return tasks
}

// finishAll returns how many tasks were answered with each code; "" is done, and goes into the journal.
func (s *server) finishAll(tasks []wire.Popped, journal map[wire.ID]int) map[string]int {
	s.TB.Helper()
	var f wire.FinishBatch
	for _, task := range tasks {
		f.Tokens = append(f.Tokens, task.Token)
	}
	body, err := json.Marshal(f)
	if err != nil {
		s.TB.Fatal(err)
	}
	codes := map[string]int{}
	for i, r := range servertest.Ask[wire.FinishBatchReply](&s.Client, 200, "POST", "/v1/tasks/finish",
		string(body)).Results {
		if codes[r.Code]++; r.Code == "" {
			journal[tasks[i].ID]++
		}
	}
	return codes
}

func TestTasksOfAKilledServerAreDeliveredAgain(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		first := serve(t, db)
		var tag string
		var ttr time.Duration
		var began time.Time
		var unfinished []wire.Popped
		var journal map[wire.ID]int
		for _, ttr = range killedTTRs {
			tag, journal = "t-"+ttr.String(), map[wire.ID]int{}
			batch := strings.Repeat(fmt.Sprintf(`{"tag":%q,"ttr":"%v"}`+"\n", tag, ttr), killedTasks)
			first.Want(200, "", "POST", "/v1/tasks/batch", batch, "Content-Type", "application/x-ndjson")
			began = time.Now()
			before := first.collect(tag, killedTasks, "")
			unfinished = before[killedFinished:]
			codes := first.finishAll(before[:killedFinished], journal)
			if codes[""] == killedFinished && time.Since(began) < ttr {
				break
			}
			t.Logf("of %d, after %v with leases of %v: %v", killedFinished, time.Since(began), ttr, codes)
		}
		first.kill()

		second := serve(t, db)
		after := second.collect(tag, len(unfinished), "&ttr=1m")
		if took := time.Since(began); took < ttr {
			t.Errorf("delivered again %v after the first pop, before the leases were over", took)
		}
		t.Logf("all were delivered again %v after the first pop", time.Since(began))
		second.finish(409, wire.CodeLeaseLost, unfinished[0])
		if codes := second.finishAll(unfinished, journal); codes[wire.CodeLeaseLost] != len(unfinished) {
			t.Errorf("old tokens: %v", codes)
		}
		if codes := second.finishAll(after, journal); codes[""] != len(after) {
			t.Errorf("new tokens: %v", codes)
		}

		for _, stats := range servertest.Ask[wire.Stats](&second.Client, 200, "GET", "/v1/stats", "").Tags {
			if stats.Tag == tag && (len(stats.Counts) != 1 || stats.Counts["completed"] != killedTasks) {
				t.Errorf("stored are %v", stats.Counts)
			}
		}
		for id, times := range journal {
			if times != 1 {
				t.Errorf("task %s was completed %d times", id, times)
			}
		}
		if len(journal) != killedTasks {
			t.Errorf("%d completions, want %d", len(journal), killedTasks)
		}
	})
}
