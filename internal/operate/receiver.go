package operate

import (
	"context"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
)

// Receiver is an address that is called with tasks.
type Receiver struct {
	App, Address string
	Tags         []string
}

// target has the tags of the receiver: a caller needs a right to all of them.
func (r Receiver) target(hidden error) target {
	t := target{name: strings.TrimSpace(r.App + " " + redact.Address(r.Address, redact.Mask)), tags: r.Tags,
		hidden: hidden}
	if len(r.Tags) == 1 {
		t.tag = r.Tags[0]
	} else {
		t.detail = "tags=" + strings.Join(r.Tags, ",")
	}
	return t
}

func toRegister(string) []access.Verb { return []access.Verb{access.Register} }

// SaveReceiver registers a receiver. It takes the verb register for all of its tags. It also takes it for the tags of
// the receiver that find returns: the one at this address, expired or not. Its secret would sign what is registered
// now. Without that right SaveReceiver returns taken.
func (o *Operator) SaveReceiver(
	ctx context.Context, by By, r Receiver, taken error,
	find func(context.Context) (Receiver, error), save func(context.Context) error,
) error {
	return o.do(ctx, by, act{
		action: audit.SaveReceiver, needs: toRegister,
		find: func(ctx context.Context) (t target, err error) {
			if err := by.lacks(toRegister(""), r.target(nil)); err != nil {
				return t, err
			}
			before, err := find(ctx)
			if err == nil {
				err = by.lacks(toRegister(""), before.target(taken))
			}
			return r.target(nil), err
		},
		do: func(ctx context.Context, _ target) (int64, error) { return 0, save(ctx) },
	})
}

// DeleteReceiver ends the calls to the receiver that find returns. It takes the verb register for all of its tags.
// unknown is the error without it.
func (o *Operator) DeleteReceiver(
	ctx context.Context, by By, unknown error,
	find func(context.Context) (Receiver, error), remove func(context.Context) error,
) error {
	return o.do(ctx, by, act{
		action: audit.DeleteReceiver, needs: toRegister,
		find: func(ctx context.Context) (target, error) {
			r, err := find(ctx)
			return r.target(unknown), err
		},
		do: func(ctx context.Context, _ target) (int64, error) { return 0, remove(ctx) },
	})
}
