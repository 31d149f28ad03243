package dashboard

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/server/browser"
)

// find goes where a text of the search field leads: to the task with the id, or to those with a tag and key.
func (d *dashboard) find(w http.ResponseWriter, r *http.Request) {
	v, known := d.who(w, r)
	if !known {
		return
	}
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	words := strings.Fields(text)
	switch id, err := strconv.ParseInt(text, 10, 64); {
	case err == nil && id > 0:
		browser.SeeOther(w, fmt.Sprintf("./tasks/%d", id))
	case len(words) == 2:
		browser.SeeOther(w, "./tasks?"+query("tag", words[0], "key", words[1]))
	case len(words) == 1:
		browser.SeeOther(w, "./tasks?"+query("tag", words[0]))
	default:
		d.fail(w, v, invalid{field: "q", want: "want.find"})
	}
}
