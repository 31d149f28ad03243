package dashboard

import (
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
)

// entry is a link of the menu.
type entry struct {
	Path, Text string
	Key        string // goes there after "g"
	Current    bool
	verb       access.Verb
}

// menu lists the pages in the order of an operator's questions.
var menu = []entry{
	{Path: "", Text: "menu.overview", Key: "o", verb: access.Observe},
	{Path: "tasks", Text: "menu.tasks", Key: "t", verb: access.Read},
	{Path: "tags", Text: "menu.tags", Key: "a", verb: access.Observe},
	{Path: "load", Text: "menu.load", Key: "l", verb: access.Observe},
	{Path: "failures", Text: "menu.failures", Key: "f", verb: access.Read},
	{Path: "nodes", Text: "menu.nodes", Key: "n", verb: access.Observe},
	{Path: "receivers", Text: "menu.receivers", Key: "r", verb: access.Observe},
	{Path: "schedules", Text: "menu.schedules", Key: "s", verb: access.Read},
	{Path: "changes", Text: "menu.changes", Key: "b", verb: access.Read},
	{Path: "audit", Text: "menu.audit", Key: "u", verb: access.Audit},
}

// Menu is the menu as the user may use it.
func (v *view) Menu() []entry {
	var shown []entry
	first, _, _ := strings.Cut(v.Path, "/")
	if first == "bulk" { // one of them, or its preview
		first = "changes"
	}
	for _, e := range menu {
		if v.Caller.SomeTag(e.verb) {
			e.Current = e.Path == first || v.Path == "" && e.Path == ""
			shown = append(shown, e)
		}
	}
	return shown
}

// key is a line of the help.
type key struct{ Key, Text string }

// KeyHelp lists the keys.
func (v *view) KeyHelp() []key {
	keys := []key{
		{"/", "keys.search"}, {"?", "keys.help"}, {"j k", "keys.move"}, {"Enter", "keys.open"}, {"x", "keys.select"},
		{"e", "keys.explain"}, {"p", "keys.pause"}, {"u", "keys.utc"},
	}
	for _, e := range v.Menu() {
		keys = append(keys, key{"g " + e.Key, e.Text})
	}
	return keys
}
