package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/server/push"
	"github.com/delaytask/delaytask/internal/wire"
)

type registerInput struct{ Body wire.Register }

type receiverInput struct {
	ID string `path:"id" doc:"Id of the receiver"`
}

func (a *API) receiverOperations() {
	register := a.operation(http.MethodPost, "/v1/receivers", "registerReceiver",
		"Register an address that is called with tasks",
		"Registering the same app and address again replaces it; a secret and a ttl that are left out stay, and "+
			"a former secret signs on for a day. Without heartbeats it is not called after its ttl, and forgotten "+
			"an hour later.", groupPush)
	register.DefaultStatus = http.StatusCreated
	huma.Register(a.spec, register, a.register)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/receivers", "listReceivers",
		"List the addresses that are called", "What may be secret in an address is masked.", groupPush),
		a.listReceivers)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/receivers/{id}", "getReceiver", "Show one of them",
		"What may be secret in its address is masked.", groupPush),
		func(ctx context.Context, in *receiverInput) (*output[wire.Receiver], error) {
			return a.showReceiver(ctx, in)
		})
	huma.Register(a.spec, a.operation(http.MethodPost, "/v1/receivers/{id}/heartbeat", "heartbeat",
		"Say that a receiver is alive", "It stays registered for its ttl from now.", groupPush),
		a.heartbeat)
	remove := a.operation(http.MethodDelete, "/v1/receivers/{id}", "removeReceiver", "Call an address no more",
		"Tasks of its tags wait, unless something else runs them.", groupPush)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, remove, a.removeReceiver)
}

func (a *API) register(ctx context.Context, in *registerInput) (*output[wire.Receiver], error) {
	taken := wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
		"this app and address are registered for tags that this token may not register; remove it with a token that "+
			"may, or wait until it is forgotten, an hour after its ttl")
	var saved wire.Receiver
	err := a.operator.SaveReceiver(ctx, by(ctx), operate.Receiver{
		App: in.Body.App, Address: in.Body.Address, Tags: in.Body.Tags,
	}, taken, func(ctx context.Context) (operate.Receiver, error) {
		before, _, err := a.receivers.Known(ctx, in.Body.App, in.Body.Address)
		return receiverOf(before), err
	}, func(ctx context.Context) (err error) {
		saved, err = a.receivers.Register(ctx, &in.Body)
		return err
	})
	return outputOf(a, saved, err)
}

func receiverOf(w wire.Receiver) operate.Receiver {
	return operate.Receiver{App: w.App, Address: w.Address, Tags: append([]string{}, w.Tags...)}
}

func (a *API) removeReceiver(ctx context.Context, in *receiverInput) (*struct{}, error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return nil, invalidID(err)
	}
	return nil, a.problem(a.operator.DeleteReceiver(ctx, by(ctx), push.NotFound(),
		func(ctx context.Context) (operate.Receiver, error) {
			w, err := a.receivers.Get(ctx, int64(id))
			return receiverOf(w), err
		}, func(ctx context.Context) error { return a.receivers.Remove(ctx, int64(id)) }))
}

func (a *API) listReceivers(ctx context.Context, _ *struct{}) (*output[wire.ReceiverList], error) {
	view := a.view(ctx, RawInput{})
	if err := view.MaySeeReceivers(); err != nil {
		return nil, a.problem(err)
	}
	all, err := a.receivers.List(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.ReceiverList]{wire.ReceiverList{Receivers: []wire.Receiver{}}}
	for _, w := range all {
		if shown, sees := receiverFor(view, w); sees {
			out.Body.Receivers = append(out.Body.Receivers, shown)
		}
	}
	return out, nil
}

func (a *API) showReceiver(ctx context.Context, in *receiverInput) (*output[wire.Receiver], error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return nil, invalidID(err)
	}
	view := a.view(ctx, RawInput{})
	if err := view.MaySeeReceivers(); err != nil {
		return nil, a.problem(err)
	}
	receiver, err := a.receivers.Get(ctx, int64(id))
	if err != nil {
		return nil, a.problem(err)
	}
	shown, sees := receiverFor(view, receiver)
	if !sees {
		return nil, push.NotFound()
	}
	return &output[wire.Receiver]{shown}, nil
}

func (a *API) heartbeat(ctx context.Context, in *receiverInput) (*output[wire.Receiver], error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return nil, invalidID(err)
	}
	if err := allow(ctx, access.Register, ""); err != nil {
		return nil, a.problem(err)
	}
	receiver, err := a.receivers.Get(ctx, int64(id))
	if err != nil {
		return nil, a.problem(err)
	}
	if !by(ctx).MayAll(access.Register, receiver.Tags) {
		return nil, push.NotFound()
	}
	receiver, err = a.receivers.Heartbeat(ctx, int64(id))
	receiver, _ = receiverFor(a.view(ctx, RawInput{}), receiver)
	return outputOf(a, receiver, err)
}

// receiverFor is a receiver as the caller sees it, if the caller may.
func receiverFor(view *operate.View, w wire.Receiver) (shown wire.Receiver, sees bool) {
	address, sees := view.Receiver(w.Address, w.Tags)
	w.Address = cmp.Or(address, redact.Mask)
	return w, sees
}
