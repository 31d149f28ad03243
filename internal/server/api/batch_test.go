package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

var lines = []string{"Content-Type", "application/x-ndjson; charset=utf-8"}

func TestABatchIsSavedInItsOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","key":"taken","delay":"1h"}`)
	tasks := []string{`{"tag":"t","body":0,"delay":"1h"}`, `{"tag":"t","key":"taken"}`,
		`{"tag":"t","body":2,"key":"k","delay":"1h"}`, `{"tag":"t","key":"k"}`}
	f := func(body string, header ...string) {
		t.Helper()
		saved := ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, body, header...)
		if len(saved.Results) != 4 {
			t.Fatalf("got %+v", saved)
		}
		for i, r := range saved.Results {
			if r.Duplicate != (i%2 == 1) || r.ID == 0 || r.Code != "" {
				t.Errorf("%d: %+v", i, r)
			}
		}
		if saved.Results[3].ID != saved.Results[2].ID {
			t.Errorf("the second of one key met %v, the first is %v", saved.Results[3].ID, saved.Results[2].ID)
		}
		if body := s.stored(saved.Results[2].ID); body != "2" {
			t.Errorf("the third has the body %s", body)
		}
		s.Want(200, "", "DELETE", "/v1/tags/t/keys/k", "")
	}
	for _, saved := range []wire.BatchSaved{
		ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, " [ ] "),
		ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, "\n\n", lines...),
	} {
		if saved.Results == nil || len(saved.Results) != 0 {
			t.Errorf("nothing is answered with %+v", saved)
		}
	}
	f("[" + strings.Join(tasks, ",") + "]")
	f(strings.Join(tasks, "\n"), lines...)
	f("\n  "+strings.Join(tasks, "\r\n\r\n")+"\n\n", lines...)
}

func TestAWrongTaskOfABatchIsNamedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := `{"tag":"t"}`
	f := func(wrong, code string) {
		t.Helper()
		status := 400
		if code == wire.CodeBodyTooLarge {
			status = 413
		}
		p := s.Want(status, code, "POST", batchPath, fmt.Sprintf("[%s,%s,%s]", good, good, wrong))
		located := len(p.Errors) == 1 && p.Errors[0].Location == "body[2]" && strings.HasPrefix(p.Detail, "body[2]: ")
		if !located && code != wire.CodeInvalidJSON { // what is not JSON at all has no places
			t.Errorf("%.60s: %+v", wrong, p)
		}
		p = s.Want(status, code, "POST", batchPath, good+"\n\n"+good+"\n"+wrong+"\n"+good, lines...)
		if len(p.Errors) != 1 || p.Errors[0].Location != "line 4" || !strings.HasPrefix(p.Detail, "line 4: ") {
			t.Errorf("%.60s: %+v", wrong, p)
		}
	}
	f(`{"tag":"?"}`, wire.CodeInvalidTag)
	f(`{"tag":"t","dealy":1}`, wire.CodeInvalidJSON)
	f(`{"tag":"t","priority":1000}`, wire.CodeInvalidPriority)
	f(`{"tag":"t"`, wire.CodeInvalidJSON)
	f(`{"tag":"t","tag":"t"}`, wire.CodeInvalidJSON)
	f("{\"tag\":\"\xff\"}", wire.CodeInvalidJSON)
	f(`{"tag":"t","headers":{"delaytask-x":"y"}}`, wire.CodeInvalidHeaders)
	f(`{"tag":"t","body":"`+strings.Repeat("x", testBodyLimit)+`"}`, wire.CodeBodyTooLarge)
	f(`{"tag":"t","body":`+strings.Repeat("[", 501)+strings.Repeat("]", 501)+`}`, wire.CodeInvalidJSON)
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks are stored", n)
	}
}

func TestARefusedTaskOfABatchNamesItsLineAndItsChunkIsNotStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := wire.ID(delaytask.NewID()).String()
	s.Save(`{"tag":"t","body":1,"id":"` + id + `","delay":"1h"}`)
	tasks := make([]string, 1001)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"tag":"t","delay":"1h","key":"k%d"}`, i)
	}
	tasks[600] = `{"tag":"t","body":2,"id":"` + id + `","delay":"1h"}`
	f := func(place, body string, header ...string) {
		t.Helper()
		saved := ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, body, header...)
		if len(saved.Results) != 1001 || len(saved.Chunks) != 3 {
			t.Fatalf("%d results in %d chunks", len(saved.Results), len(saved.Chunks))
		}
		for i, want := range []struct {
			count   int
			outcome string
		}{{500, wire.ChunkStored}, {500, wire.ChunkRefused}, {1, wire.ChunkStored}} {
			if c := saved.Chunks[i]; c.Count != want.count || c.Outcome != want.outcome ||
				(len(c.Errors) != 0) != (i == 1) {
				t.Errorf("chunk %d: %+v", i, c)
			}
		}
		if e := saved.Chunks[1].Errors; len(e) != 1 || e[0].Location != place || e[0].Message == "" {
			t.Errorf("the refused chunk: %+v", e)
		}
		if r := saved.Results[600]; r.Code != wire.CodeConflict {
			t.Errorf("the refused task: %+v", r)
		}
		if r := saved.Results[601]; r.Code != wire.CodeChunkRefused || !strings.Contains(r.Detail, place) || r.ID != 0 {
			t.Errorf("its neighbour: %+v", r)
		}
		if n := s.count(); n != 502 {
			t.Errorf("%d tasks are stored, want 501 and the one from before", n)
		}
	}
	f("body[600]", "["+strings.Join(tasks, ",")+"]")
	f("line 601", strings.Join(tasks, "\n"), lines...) // again: what is there is there once
}
