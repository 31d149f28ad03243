//go:build !race

package api

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// TestALargeBatchTakesABoundedMultipleOfItself watches the heap while 10,000 tasks of 32 MiB are saved.
func TestALargeBatchTakesABoundedMultipleOfItself(t *testing.T) {
	if testing.Short() {
		t.Skip("saves 32 MiB")
	}
	s := newSite(t)
	s.api.requestWait = 2 * time.Minute // a busy machine saves a large batch slowly
	line := `{"tag":"t","delay":"1h","body":"` + strings.Repeat("x", 3300) + `"}` + "\n"
	body := strings.Repeat(line, mostBatch)
	ended, most := make(chan struct{}), make(chan uint64)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var highest uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapInuse)
			select {
			case <-ticker.C:
			case <-ended:
				most <- highest
				return
			}
		}
	}()
	saved := ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, body, "Content-Type", mediaNDJSON)
	close(ended)
	grown := int64(<-most) - int64(before.HeapInuse)
	times := float64(grown) / float64(len(body))
	if t.Logf("%d bytes took %.1f times as much memory", len(body), times); times > 10 {
		t.Error("that is too much")
	}
	if n := s.count(); n != mostBatch || len(saved.Results) != mostBatch {
		t.Errorf("%d tasks are stored, %d are answered", n, len(saved.Results))
	}
}

func TestPagesEndAt16MiBAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var want []wire.ID
	put := func(bytes int) {
		id, err := s.scheduler.SaveDelayTask(t.Context(), "t", "x", time.Hour)
		servertest.OK(t, err)
		servertest.Exec(t, s.dsn, "UPDATE delay_task_message SET message_body = ? WHERE id = ?",
			strings.Repeat("b", bytes), id)
		want = append(want, wire.ID(id))
	}
	for range 5 {
		put(6 << 20)
	}
	put(20 << 20)
	put(1)
	var seen []wire.ID
	var pages []int
	for cursor := ""; len(pages) == 0 || cursor != ""; {
		page := list(s, "tag=t&order=due&bodies=true&cursor="+cursor)
		for _, task := range page.Tasks {
			seen = append(seen, task.ID)
			if task.BodyText == nil {
				t.Fatalf("task %v has no body", task.ID)
			}
		}
		pages, cursor = append(pages, len(page.Tasks)), page.Next
	}
	if !slices.Equal(seen, want) || !slices.Equal(pages, []int{2, 2, 1, 1, 1}) {
		t.Errorf("pages of %v hold %v, want %v", pages, seen, want)
	}
	if page := list(s, "tag=t"); len(page.Tasks) != 7 || page.Next != "" {
		t.Errorf("without bodies: %d tasks, next %q", len(page.Tasks), page.Next)
	}
}
