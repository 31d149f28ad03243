package operate

import (
	"slices"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
)

// MaySeeReceivers returns an error for a caller that neither registers receivers of some tag nor observes one.
func (v *View) MaySeeReceivers() error {
	if v.SomeTag(access.Register) {
		return nil
	}
	return v.Allow(access.Observe, "")
}

// Receiver reports whether the caller may see a receiver of the tags, and returns its address without what often is
// secret in it, "" where that cannot be told. Who registers it knows that.
func (v *View) Receiver(address string, tags []string) (shown string, sees bool) {
	if v.o.Redactor != nil {
		address = redact.Address(address, redact.Mask)
	}
	return address, v.MayAll(access.Register, tags) || v.MayAll(access.Observe, tags)
}

// MayAll reports whether the caller may do it with tasks of all the tags.
func (by By) MayAll(verb access.Verb, tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !by.May(verb, tag) })
}
