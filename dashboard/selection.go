package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	// mostSelected is how many tasks one form changes.
	mostSelected = 1000
	// verbNone is of the form's first button, which no one sees. Browsers press that at Enter on a box.
	verbNone = "none"
)

// changeTasks cancels or retries the tasks that were selected in a list.
func (v *view) changeTasks() (result, error) {
	verb, back := v.r.PostForm.Get("verb"), pathWithin(v.r.PostForm.Get("back"))
	if verb == verbNone {
		return result{to: strings.TrimPrefix(back, "./")}, nil
	}
	given := v.r.PostForm["id"]
	if len(given) == 0 || len(given) > mostSelected {
		return result{}, invalid{field: "id", want: "want.tasks", arg: mostSelected}
	}
	ids := make([]int64, len(given)) // all are read before one is changed
	for i, text := range given {
		var err error
		if ids[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return result{}, invalid{field: "id", want: "want.number"}
		}
	}
	if verb != "cancel" && verb != "retry" {
		return result{}, errNoPage
	}
	var o outcome
	for i, id := range ids {
		err := v.change(id, verb)
		switch {
		case err == nil:
			o.done++
			continue
		case isMistake(err):
			o.left++
			continue
		case i == 0:
			return result{}, err
		}
		v.logged(statusOf(err), err)
		o.untried = len(ids) - i
		break
	}
	return result{to: o.on(strings.TrimPrefix(back, "./")), did: true}, nil
}

// isMistake reports whether the error is about the task, so that the others can go on.
func isMistake(err error) bool {
	return statusOf(err) < http.StatusInternalServerError
}

// outcome is what became of the tasks that were selected.
type outcome struct{ done, left, untried int }

// on adds it to the page that the selection was made on.
func (o outcome) on(back string) string {
	path, query, _ := strings.Cut(back, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = url.Values{}
	}
	for name, n := range map[string]int{"done": o.done, "left": o.left, "untried": o.untried} {
		values.Set(name, strconv.Itoa(n))
	}
	return path + "?" + values.Encode()
}
