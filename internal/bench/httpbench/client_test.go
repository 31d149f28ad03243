package httpbench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// against answers every request with the handler.
func against(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	c := NewClient(server.URL)
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return c
}

func TestWhatIsRefusedIsAnError(t *testing.T) {
	refuse := against(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"overloaded"}`)
	})
	task := Task{Tag: "t", At: time.Now()}
	_, _, popErr := refuse.Pop(t.Context(), "t", 1, time.Second)
	for call, err := range map[string]error{
		"save": refuse.Save(t.Context(), task), "batch": refuse.SaveBatch(t.Context(), []Task{task}), "pop": popErr,
		"finish": refuse.Finish(t.Context(), nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "overloaded") {
			t.Errorf("%s: %v", call, err)
		}
	}
	one := against(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"results":[{"id":"1"},{"code":"outcome_unknown","detail":"it ended"}]}`)
	})
	if err := one.SaveBatch(t.Context(), []Task{task, task}); err == nil ||
		!strings.Contains(err.Error(), "outcome_unknown") {
		t.Errorf("a batch of which one was not stored: %v", err)
	}
}

// TestPullersTakeAndFinish lets three clients take tasks of a server that hands out two at a time, one of them twice.
func TestPullersTakeAndFinish(t *testing.T) {
	var mu sync.Mutex
	due := time.Now()
	left := []wire.ID{1, 2, 3, 3, 4}
	finished := make(map[string]int)
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/finish") {
			var batch wire.FinishBatch
			_ = json.NewDecoder(r.Body).Decode(&batch)
			for _, token := range batch.Tokens {
				finished[token]++
			}
			_, _ = io.WriteString(w, `{"results":[]}`)
			return
		}
		var reply wire.PopReply
		for len(left) > 0 && len(reply.Tasks) < 2 {
			reply.Tasks = append(reply.Tasks, wire.Popped{
				ID: left[0], Token: left[0].String() + ".1", Expected: wire.Time(due), Due: wire.Time(due),
			})
			left = left[1:]
		}
		if len(reply.Tasks) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_ = json.NewEncoder(w).Encode(reply)
	})
	seen := lateness.NewStarts(4)
	last, err := Pull{Tag: "t", Clients: 3, Max: 2, Wait: time.Second}.Run(t.Context(), c, seen, time.Minute)
	if err != nil || last.Before(due) {
		t.Fatalf("the last was finished at %v, %v", last, err)
	}
	for id, want := range map[int64]int{1: 1, 2: 1, 3: 2, 4: 1} {
		if seen.Count(id) != want || finished[wire.ID(id).String()+".1"] != want {
			t.Errorf("task %d came %d times, want %d; finished: %v", id, seen.Count(id), want, finished)
		}
	}
}

func TestAClientThatExpectsNoTaskReportsOne(t *testing.T) {
	polled := make(chan struct{}, 1)
	quiet := against(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case polled <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})
	err := quiet.Wait(t.Context(), "t", 3, time.Second, func(context.Context) error {
		<-polled
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	busy := against(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			`{"tasks":[{"id":"1","token":"1.1","expected":"2026-03-01T12:00:00Z","due":"2026-03-01T12:00:00Z"}]}`)
	})
	err = busy.Wait(t.Context(), "t", 1, time.Second, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, errTask) {
		t.Errorf("a task came: %v", err)
	}
}

func TestAReceiverNotesWhatIsCalled(t *testing.T) {
	var mu sync.Mutex
	noted := make(map[int64]int)
	began := time.Now()
	note := func(id int64, at time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if at.Before(began) {
			t.Errorf("task %d was called at %v", id, at)
		}
		noted[id]++
	}
	errOnFire := errors.New("the machine is on fire")
	err := Receive(t.Context(), note, func(url string) error {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for id, want := range map[string]int{"7": http.StatusOK, "": http.StatusBadRequest} {
			call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
			if err != nil {
				return err
			}
			call.Header.Set("Delaytask-Id", id)
			res, err := client.Do(call)
			if err != nil {
				return err
			}
			_ = res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("a call of task %q was answered %s", id, res.Status)
			}
		}
		return errOnFire
	})
	if !errors.Is(err, errOnFire) || len(noted) != 1 || noted[7] != 1 {
		t.Errorf("noted %v, %v", noted, err)
	}
}
