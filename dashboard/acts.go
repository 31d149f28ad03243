package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
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
func (*view) Query(pairs ...string) (template.URL, error) { return params(query(pairs...)) }

// params makes the parameters of a link of values or of a query. A template would escape what is no template.URL once
// more.
func params(of any) (template.URL, error) {
	values, ok := of.(url.Values)
	if !ok {
		var err error
		if values, err = url.ParseQuery(fmt.Sprint(of)); err != nil {
			return "", err
		}
	}
	return template.URL(values.Encode()), nil //nolint:gosec // Encode leaves nothing that ends the parameters
}

// audited records what a user asked for, and does it. do also tells how many tasks it has changed.
func (v *view) audited(ctx context.Context, a audit.Act, do func(context.Context) (int, error)) error {
	a.Who = v.Caller.Name()
	err := v.audit.DoAll(ctx, a, func(ctx context.Context) (int64, error) {
		n, err := do(ctx)
		return int64(n), err
	})
	if errors.Is(err, delaytask.ErrNotRecorded) {
		v.log.Error("dashboard: a change was refused, because it could not be recorded", "action", a.Action, "err", err)
	}
	return err
}

// redacted is a text of a task without what looks like a secret.
func (v *view) redacted(tag, text string) string { return v.o.Redact(tag, text) }

// Redacted is redacted, for templates.
func (v *view) Redacted(tag, text string) string { return v.redacted(tag, text) }
