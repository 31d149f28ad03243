package signin

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// deadlined remembers until when the form of its request may arrive.
type deadlined struct {
	http.ResponseWriter
	until time.Time
}

func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.until = t
	return nil
}

// TestFormsThatStayMakeRoom has as many logins whose forms do not arrive as are read at a time, and one more.
func TestFormsThatStayMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f forms
		var all [mostForms + 2]deadlined
		begin := time.Now()
		wants := func(of *deadlined, until time.Time) {
			t.Helper()
			if !of.until.Equal(until) {
				t.Errorf("a form may arrive until %v, want %v", of.until, until)
			}
		}
		for i := range mostForms {
			f.read(&all[i])
		}
		wants(&all[0], begin.Add(formWait))
		time.Sleep(time.Second)
		done := f.read(&all[mostForms])
		wants(&all[0], time.Now()) // the oldest one is cut off
		wants(&all[1], begin.Add(formWait))
		wants(&all[mostForms], time.Now().Add(formWait))
		done()
		wants(&all[mostForms], time.Time{}) // for the answer
		f.read(&all[mostForms+1])
		wants(&all[1], begin.Add(formWait)) // there was room
	})
}
