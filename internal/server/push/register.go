package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor/webhook"
)

const (
	maxApp     = 128 // bytes
	maxTags    = 100
	maxAddress = 2048 // bytes; the limit of a row

	defaultTTL = 30 * time.Second
	minTTL     = 5 * time.Second
	maxTTL     = time.Hour
)

// Register stores an address. Registering the same application and address again replaces it. Its former secret then
// signs beside the new one for a day; a secret and a TTL that are left out stay. It returns a *[wire.Problem] for an
// invalid registration, and changes nothing.
func (r *Registry) Register(ctx context.Context, asked *wire.Register) (wire.Receiver, error) {
	w, err := r.check(asked)
	if err != nil {
		return wire.Receiver{}, err
	}
	before, _, err := r.Store.ReceiverAt(ctx, w.App, w.Address)
	if err != nil {
		return wire.Receiver{}, err
	}
	if w.TTL == 0 {
		w.TTL = cmp.Or(before.TTL, defaultTTL)
	}
	live, reading, err := r.Store.Receivers(ctx)
	if err != nil {
		return wire.Receiver{}, err
	}
	if err := r.checkRoom(ctx, w, live); err != nil {
		return wire.Receiver{}, err
	}
	if w.Secret, err = r.sealSecret(w, asked.Secret, before, reading.Time); err != nil {
		return wire.Receiver{}, err
	}
	stored, err := r.Store.SaveReceiver(ctx, w)
	if err != nil {
		return wire.Receiver{}, err
	}
	r.look()
	return shown(stored), nil
}

// check returns the receiver without its secret, and without a TTL where the request has none.
func (r *Registry) check(asked *wire.Register) (row.Receiver, error) {
	w := row.Receiver{App: asked.App, Address: asked.Address, TTL: asked.TTL.Std()}
	switch {
	case !delaytask.ValidTag(w.App):
		return w, refused(wire.CodeInvalidParameter, "body.app",
			"an app has 1 to 128 characters of A–Z a–z 0–9 . _ - : /")
	case w.TTL != 0 && (w.TTL < minTTL || w.TTL > maxTTL):
		return w, refused(wire.CodeInvalidTTR, "body.ttl", fmt.Sprintf("a ttl is %v to %v", minTTL, maxTTL))
	case len(asked.Tags) == 0 || len(asked.Tags) > maxTags:
		return w, refused(wire.CodeInvalidTag, "body.tags", fmt.Sprintf("a receiver takes 1 to %d tags", maxTags))
	}
	for i, tag := range asked.Tags {
		where := fmt.Sprintf("body.tags[%d]", i)
		if slices.Contains(asked.Tags[:i], tag) {
			return w, refused(wire.CodeInvalidTag, where, "the tag comes twice")
		}
		if !delaytask.ValidTag(tag) {
			return w, refused(wire.CodeInvalidTag, where, "a tag has 1 to 128 characters of A–Z a–z 0–9 . _ - : /")
		}
		if r.reserved(tag) {
			return w, problemAt(http.StatusConflict, wire.CodeConflict, where,
				"the service serves the tag "+tag+" by itself")
		}
	}
	w.Tags = slices.Sorted(slices.Values(asked.Tags))
	return w, r.checkAddress(w.Address)
}

func (r *Registry) checkAddress(address string) error {
	if len(address) > maxAddress {
		return refused(wire.CodeInvalidAddress, "body.address",
			fmt.Sprintf("an address has at most %d bytes", maxAddress))
	}
	err := r.Client.CheckURL(address)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, webhook.ErrBlockedURL):
		return refused(wire.CodeBlockedAddress, "body.address", err.Error()+" (push.allow, DELAYTASK_PUSH_ALLOW)")
	default:
		return refused(wire.CodeInvalidAddress, "body.address", err.Error())
	}
}

func refused(code, where, why string) *wire.Problem {
	status := http.StatusBadRequest
	if code == wire.CodeBlockedAddress || code == wire.CodeSecretsImpossible {
		status = http.StatusUnprocessableEntity // the settings of this server forbid it
	}
	return problemAt(status, code, where, why)
}

func problemAt(status int, code, where, why string) *wire.Problem {
	p := wire.NewProblem(status, code, why)
	p.Errors = []wire.Detail{{Location: where, Message: why}}
	return p
}

// Every process reads all live receivers each second, and a caller with the right to register can invent addresses.
// Concurrent registrations may exceed a bound by their number.
const (
	mostOfApp  = 1_000  // live receivers of one application
	mostLive   = 10_000 // of all
	mostStored = 20_000 // with those that expired within about an hour, whose heartbeats bring them back
)

// checkRoom refuses one receiver too many. Registering a live one again needs no room.
func (r *Registry) checkRoom(ctx context.Context, w row.Receiver, live []row.Receiver) error {
	ofApp := 0
	for _, other := range live {
		if same(w, other) {
			return nil
		}
		if other.App == w.App {
			ofApp++
		}
	}
	const wait = "remove those that are not needed, or let them expire"
	switch {
	case ofApp >= mostOfApp:
		return tooMany("body.app", fmt.Sprintf("the application has %d live receivers, and may have no more; %s", ofApp,
			wait))
	case len(live) >= mostLive:
		return tooMany("body", fmt.Sprintf("there are %d live receivers, and there may be no more; %s", len(live),
			wait))
	}
	stored, err := r.Store.CountReceivers(ctx)
	if err == nil && stored >= mostStored {
		err = tooMany("body",
			fmt.Sprintf("%d receivers were registered within the last hour; use longer ttls, remove those that end, "+
				"or wait until expired ones are forgotten", stored))
	}
	return err
}

func same(a, b row.Receiver) bool { return a.App == b.App && a.Address == b.Address }

func tooMany(where, why string) *wire.Problem {
	return problemAt(http.StatusConflict, wire.CodeTooManyReceivers, where, why)
}
