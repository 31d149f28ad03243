package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// Start registers the address and its tags at the service, and renews that until Stop. Serve the address before: the
// service may call at once. Start does nothing when called again, and needs a tag. The end of ctx ends the first
// request alone, which is tried again: call [Receiver.Stop].
//
// It returns an [*Error] when the service refuses the registration: for an address that it may not call, for a token
// without the verb register, or for a secret that it cannot keep (it needs DELAYTASK_SECRET). That the service is away
// is logged, and tried again.
func (r *Receiver) Start(ctx context.Context) error {
	if err := r.client.enter(ctx); err != nil {
		return err
	}
	if len(r.tags()) == 0 {
		return fmt.Errorf("%w: the receiver has no tag; Register comes first", delaytask.ErrInvalidOption)
	}
	if r.setStarted(true) {
		return nil
	}
	id, err := r.announce(ctx)
	if isRefused(err) {
		r.setStarted(false)
		return err
	}
	if err != nil {
		r.client.log.Warn("a receiver could not be registered; it is tried again", "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewal.Err() != nil {
		r.withdraw(id)
		return delaytask.ErrClosed
	}
	r.renewed.Go(func() { r.renew(id) })
	return nil
}

// setStarted marks the receiver as started and returns whether it was.
func (r *Receiver) setStarted(to bool) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, r.started = r.started, to
	return was
}

// isRefused reports a refusal that trying again does not change.
func isRefused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status < http.StatusInternalServerError && !maySucceedLater(err)
}

// announce registers the address with the present tags.
func (r *Receiver) announce(ctx context.Context) (wire.ID, error) {
	select {
	case <-r.changed:
	default:
	}
	var receiver wire.Receiver
	err := r.client.try(ctx, &httpCall{method: http.MethodPost, path: "/v1/receivers", into: &receiver,
		body: wire.Register{
			App: r.app, Address: r.address, Tags: r.tags(), Secret: r.secret.Reveal(), TTL: wire.Duration(r.ttl),
		}})
	if err != nil {
		r.change() // so that the next renewal registers
		return 0, fmt.Errorf("register a receiver: %w", err)
	}
	return receiver.ID, nil
}

// renew keeps the registration alive, and removes it in the end. id is 0 until it is registered.
func (r *Receiver) renew(id wire.ID) {
	wait := r.ttl / 3
	if id == 0 {
		wait = time.Second
	}
	for tick := time.NewTimer(wait); ; tick.Reset(wait) {
		select {
		case <-r.renewal.Done():
			r.withdraw(id)
			return
		case <-tick.C:
		case <-r.changed:
			r.change() // so that announce sees it
		}
		err := r.beat(&id)
		wait = r.ttl / 3
		if err != nil && r.renewal.Err() == nil {
			r.client.log.Warn("the registration of a receiver could not be renewed; it is tried again", "err", err)
			wait = min(wait, time.Second)
			if !sleep(r.renewal, wait) {
				continue
			}
		}
	}
}

// beat sends a heartbeat, or registers if there is no registration or the tags have changed.
func (r *Receiver) beat(id *wire.ID) (err error) {
	if len(r.changed) == 0 && *id != 0 {
		path := "/v1/receivers/" + id.String() + "/heartbeat"
		err = r.client.try(r.renewal, &httpCall{method: http.MethodPost, path: path})
		if !errors.Is(err, delaytask.ErrNotFound) {
			return err
		}
	}
	if len(r.tags()) == 0 {
		r.withdraw(*id)
		*id = 0
		return nil
	}
	receiver, err := r.announce(r.renewal)
	if err == nil {
		*id = receiver
	}
	return err
}

// withdraw ends the registration of the address. If the service is not reached, it ends after its TTL.
func (r *Receiver) withdraw(id wire.ID) {
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWait)
	defer cancel()
	err := r.client.try(ctx, &httpCall{method: http.MethodDelete, path: "/v1/receivers/" + id.String()})
	if err != nil && !errors.Is(err, delaytask.ErrNotFound) {
		r.client.log.Warn("a receiver could not be removed; the service forgets it after its TTL", "err", err)
	}
}
