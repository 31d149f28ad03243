package access

import (
	"fmt"
	"slices"
	"strings"
)

// Verb is something that a caller may do with tasks of a tag.
type Verb string

const (
	Save     Verb = "save"      // save tasks, of any tag but "http"
	SaveHTTP Verb = "save_http" // save tasks of the tag "http": whoever may, chooses where the server sends requests
	Read     Verb = "read"      // see tasks
	Change   Verb = "change"    // cancel, reschedule and retry tasks, and change their bodies
	Work     Verb = "work"      // pop tasks, and finish, fail, release and touch them
	Operate  Verb = "operate"   // pause and resume tags, see nodes and statistics
	Metrics  Verb = "metrics"   // read the metrics, which name all tags; whoever may operate all tags may as well
	Register Verb = "register"  // register receivers, whose addresses are called back with tasks

	// All is every verb, also those that later releases add.
	All Verb = "all"
)

// Verbs lists what a caller may do, without All.
var Verbs = []Verb{Save, SaveHTTP, Read, Change, Work, Operate, Metrics, Register}

// HTTPTag is the built-in tag whose tasks say themselves which address is called.
const HTTPTag = "http"

// ToSave is the verb that it takes to save a task of the tag.
func ToSave(tag string) Verb {
	if tag == HTTPTag {
		return SaveHTTP
	}
	return Save
}

// ParseVerbs reads verbs by their names, each once. It returns [ErrInvalid] for an unknown one, and when there are
// none.
func ParseVerbs(names []string) ([]Verb, error) {
	var verbs []Verb
	for _, name := range names {
		v := Verb(strings.TrimSpace(name))
		if v != All && !slices.Contains(Verbs, v) {
			return nil, fmt.Errorf("%w: there is no verb %.40q: want %s", ErrInvalid, v, verbNames())
		}
		if !slices.Contains(verbs, v) {
			verbs = append(verbs, v)
		}
	}
	if len(verbs) == 0 {
		return nil, fmt.Errorf("%w: a token without verbs may do nothing: want some of %s", ErrInvalid, verbNames())
	}
	return verbs, nil
}

func verbNames() string {
	var list strings.Builder
	for _, v := range Verbs {
		list.WriteString(string(v) + ", ")
	}
	return list.String() + "or " + string(All)
}
