//go:build !race

package api

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

// TestALargeBatchTakesABoundedMultipleOfItself watches the heap while 10,000 tasks of 32 MiB are saved.
func TestALargeBatchTakesABoundedMultipleOfItself(t *testing.T) {
	if testing.Short() {
		t.Skip("saves 32 MiB")
	}
	s := newSite(t, patient)
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
