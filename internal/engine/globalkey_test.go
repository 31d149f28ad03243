package engine

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestKeyOfAllTagsIsMetByWhateverTag(t *testing.T) {
	global := func(s *processor.Save) error {
		s.Key = row.GlobalKey + "7"
		return nil
	}
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", time.Hour, global)
		for range 2 { // the second time taken keys are looked up first
			got, _, err := e.Save(w.Context(), w.task("b", time.Hour, global))
			if want := (&processor.DuplicateError{ID: id}); err == nil || err.Error() != want.Error() || got != id {
				w.Errorf("saved as %d, %v, want %v", got, err, want)
			}
		}
		if _, err := e.Cancel(w.Context(), nil, Ref{Tag: "b", Key: row.GlobalKey + "7"}, false); err != nil {
			w.Error(err)
		}
		saved, err := e.SaveAll(w.Context(), []processor.Save{w.task("b", time.Hour, global), w.task("c", time.Hour, global)})
		if err != nil || saved[0].Err != nil || saved[1].Err == nil ||
			saved[1].Err.Error() != (&processor.DuplicateError{ID: saved[0].ID}).Error() {
			w.Errorf("saved together: %v, %v", saved, err)
		}
	})
}
