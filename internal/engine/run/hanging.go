package run

import (
	"bytes"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"

	"github.com/delaytask/delaytask/internal/row"
)

// Hanging is a processor that ignores that its context has ended.
type Hanging struct {
	ID      int64 // of its task
	Tag     string
	Attempt int
	Since   row.Time // when it was called
	Stack   string   // where it is, "" when it has just returned
}

// hanging knows the abandoned processors, also those whose rows were let go.
type hanging struct {
	mu  sync.Mutex // the lock of an attempt may be taken while it is held
	all []*Attempt
}

// mostHanging bounds the stacks that are shown.
const mostHanging = 20

func (h *hanging) add(a *Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.current(), a)
}

// current drops those that have returned. The caller locks.
func (h *hanging) current() []*Attempt {
	h.all = slices.DeleteFunc(h.all, func(a *Attempt) bool {
		progress, _, _ := a.state()
		return progress == returned
	})
	return h.all
}

func (h *hanging) list() []*Attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.current()
	return slices.Clone(all[:min(len(all), mostHanging)])
}

// Hanging returns the processors that hang in this process, the longest first. It takes the stacks of all goroutines,
// and only where there is one.
func (r *runner) Hanging() (found []Hanging) {
	all := r.Attempts.hanging.list()
	if len(all) == 0 {
		return nil
	}
	stacks := stacks()
	for _, a := range all {
		found = append(found, Hanging{
			ID: a.Row.ID, Tag: a.Row.Tag, Attempt: a.Row.Attempt, Since: a.began, Stack: stacks.of(a),
		})
	}
	return found
}

// goroutines are the stacks of all goroutines, with the labels of tasks.
type goroutines []byte

func stacks() goroutines {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return nil
	}
	return all.Bytes()
}

// of returns where the task's processor is, or "" when it has returned.
func (g goroutines) of(a *Attempt) string {
	label := []byte(strconv.Quote(labelTask) + ":" + strconv.Quote(strconv.FormatInt(a.Row.ID, 10)))
	for stack := range bytes.SplitSeq(g, []byte("\n\n")) {
		if bytes.Contains(stack, label) {
			return string(stack)
		}
	}
	return ""
}
