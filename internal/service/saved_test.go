package service

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// TestTheAnswerToASaveIsWhatIsStored compares the task that a save answers with the one that is read then. When it was created and
// updated is for the database to say, and absent unless the task had to be read.
func TestTheAnswerToASaveIsWhatIsStored(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := serve(t, settings(db.DSN))
		f := func(save string, wantStatus int, moments bool) {
			t.Helper()
			var saved, stored map[string]any
			if status, text := r.call(t, "POST", "/v1/tasks", save, &saved); status != wantStatus {
				t.Errorf("%s: %d %s", save, status, text)
				return
			}
			r.call(t, "GET", "/v1/tasks/"+saved["id"].(string), "", &stored)
			if _, told := saved["created"]; told != moments {
				t.Errorf("%s: created is told: %v", save, told)
			}
			delete(saved, "duplicate")
			if !moments {
				maps.DeleteFunc(stored, func(name string, _ any) bool { return name == "created" || name == "updated" })
			}
			if !reflect.DeepEqual(saved, stored) {
				was, _ := json.Marshal(saved)
				is, _ := json.Marshal(stored)
				t.Errorf("answered\n%s, stored is\n%s", was, is)
			}
		}
		f(`{"tag":"t","delay":"1h"}`, 201, false)
		f(`{"tag":"t","body":{"n":[1, 2]},"delay":"1h0.0015s","key":"k","ttr":"90.0001s","max_attempts":3,"priority":-7,
			"headers":{"a":"b"},"app":"shop","max_lateness":"1500ms","late_policy":"fail"}`, 201, false)
		f(`{"tag":"t","at":"2031-02-03T04:05:06.7891234+02:00","no_attempt_limit":true}`, 201, false)
		f(`{"tag":"t","key":"k","app":"shop"}`, 200, true)
		f(`{"tag":"t","delay":"1h","id":"1234567890123"}`, 201, true)
		f(`{"tag":"t","delay":"1h","id":"1234567890123"}`, 201, true)
	})
}
