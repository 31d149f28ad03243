package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
)

// bodyVerbs has the operations that take a body, and the verbs of which a caller has one for some tag before the body
// is read. The operation itself checks the right for the tag, which may be in the body. Without a verb any caller may.
var bodyVerbs = map[string][]access.Verb{
	"saveTask": {access.Save, access.SaveHTTP}, "saveTasks": {access.Save, access.SaveHTTP},
	"changeTask": {access.Change}, "changeTaskByKey": {access.Change}, "changeTasks": {access.Change},
	"finish": {access.Work}, "touch": {access.Work}, "release": {access.Work}, "fail": {access.Work},
	"finishAll": {access.Work}, "registerReceiver": {access.Register}, "wake": {access.Save},
	"pauseTag": {access.Operate}, "pauseSchedule": {access.Operate}, "triggerSchedule": {access.Operate},
	"backfillSchedule": {access.Operate}, "saveSchedule": {access.Schedule}, "previewSchedule": nil,
}

// verbsByRoute returns bodyVerbs by the patterns of the routes.
func verbsByRoute(api *huma.OpenAPI) (map[string][]access.Verb, error) {
	verbs := map[string][]access.Verb{}
	for path, item := range api.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if op == nil || op.RequestBody == nil {
				continue
			}
			needed, known := bodyVerbs[op.OperationID]
			if !known {
				return nil, fmt.Errorf("httpapi: bodyVerbs lacks the operation %s", op.OperationID)
			}
			verbs[op.Method+" "+path] = needed
		}
	}
	return verbs, nil
}

// entitled refuses a body of a caller that may not do with any tag what the operation does.
func (a *API) entitled(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if verbs := a.verbs[pattern]; len(verbs) > 0 &&
			!slices.ContainsFunc(verbs, access.From(r.Context()).SomeTag) {
			p, _ := operate.Problem(access.Forbidden(verbs[0], ""))
			w.Header().Set("Connection", "close") // otherwise the server reads what is left of the body
			refused(w, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}
