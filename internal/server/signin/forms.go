package signin

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// mostForms is how many forms of logins are read at a time. One more cuts off the one that has been read longest: a
	// browser sends its form at once, so those that stay are of strangers.
	mostForms = 256
	formWait  = 5 * time.Second // how long a form of a login may take to arrive
)

// forms are the logins whose forms are read. Anyone may send one.
type forms struct {
	mu   sync.Mutex
	open []*http.ResponseController // the longest first
}

// read begins the reading of a form. It is over when done is called.
func (f *forms) read(w http.ResponseWriter) (done func()) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(formWait)) // a recorder in a test has no deadlines
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) == mostForms {
		_ = f.open[0].SetReadDeadline(time.Now())
		f.open = slices.Delete(f.open, 0, 1)
	}
	f.open = append(f.open, control)
	return func() {
		_ = control.SetReadDeadline(time.Time{}) // it would end the context of the request
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open = slices.DeleteFunc(f.open, func(other *http.ResponseController) bool { return other == control })
	}
}
