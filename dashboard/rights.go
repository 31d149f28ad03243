package dashboard

import (
	"maps"
	"slices"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
)

// May reports whether the user may do it with tasks of the tag, for a template that offers it. Actions check it again.
func (v *view) May(verb, tag string) bool {
	return v.allow(access.Verb(verb), tag) == nil
}

// MayDelete reports whether the user may delete a schedule of the tag, for a template that offers it.
func (v *view) MayDelete(tag string) bool { return v.by().MaySchedule(tag) }

// readingVerbs change nothing.
var readingVerbs = map[access.Verb]bool{
	access.Read: true, access.Observe: true, access.Bodies: true, access.Audit: true,
}

// allow returns an error when the user may not do it with tasks of the tag, or of some tag when that is "".
func (v *view) allow(verb access.Verb, tag string) error {
	switch {
	case v.o.ReadOnly && !readingVerbs[verb]:
		return errReadOnly
	case v.Caller.May(verb, tag), tag == "" && v.Caller.SomeTag(verb):
		return nil
	default:
		return errForbidden
	}
}

// allTags reports whether the user may read tasks of every tag.
func (v *view) allTags(verb access.Verb) bool { return v.Caller.AnyTag(verb) }

// by is the user.
func (v *view) by() operate.By {
	caller := v.Caller
	if v.o.ReadOnly {
		caller = caller.Only(slices.Collect(maps.Keys(readingVerbs))...)
	}
	return operate.By{Caller: caller, Via: audit.Dashboard}
}

// look is what the user may see. A page masks the part of a text that it shows.
func (v *view) look() *operate.View { return v.operator.View(v.by()).Bare() }
