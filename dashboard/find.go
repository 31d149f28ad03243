package dashboard

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/delaytask/delaytask/internal/server/browser"
)

// find goes where a text of the search field leads: to the task with the id, or to those with a tag and key.
func (d *dashboard) find(w http.ResponseWriter, r *http.Request) {
	v, known := d.who(w, r)
	if !known {
		return
	}
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	tag, key := text, "" // a key may hold spaces
	if end := strings.IndexFunc(text, unicode.IsSpace); end > 0 {
		tag, key = text[:end], strings.TrimSpace(text[end:])
	}
	switch id, err := strconv.ParseInt(text, 10, 64); {
	case err == nil && id > 0:
		browser.SeeOther(w, fmt.Sprintf("./tasks/%d", id))
	case tag != "":
		browser.SeeOther(w, "./tasks?"+query("tag", tag, "key", key))
	default:
		d.fail(w, v, invalid{field: "q", want: "want.find"})
	}
}
