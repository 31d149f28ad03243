package push

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/encrypted"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// Store keeps the receivers. The store of the database implements it.
type Store interface {
	SaveReceiver(ctx context.Context, w row.Receiver) (row.Receiver, error)
	Heartbeat(ctx context.Context, id int64) (bool, error)
	DeleteReceiver(ctx context.Context, id int64) (bool, error)
	Receiver(ctx context.Context, id int64) (row.Receiver, bool, error)
	ReceiverAt(ctx context.Context, app, address string) (row.Receiver, bool, error) // expired or not
	Receivers(ctx context.Context) ([]row.Receiver, row.Reading, error)
	CountReceivers(ctx context.Context) (int, error) // those that have expired included
	PurgeReceivers(ctx context.Context) (int, error)
}

// Scheduler runs the tasks of the tags that are registered with it.
type Scheduler interface {
	Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error
	Unregister(tag string) bool
}

// Config is what a [Registry] is made of.
type Config struct {
	Store     Store
	Scheduler Scheduler
	Client    *webhook.Client
	Secrets   *encrypted.Box // nil: receivers that have a secret are refused
	Log       *slog.Logger

	// Reserved are the tags that the service serves by itself: receivers cannot register for them.
	Reserved []string
	// Options are the options of a tag that receivers serve. Default: none.
	Options func(tag string) []processor.RegisterOption
	// Every is how often the live receivers are read, by one query. Default 1 s.
	Every time.Duration
	// Grace is how long a tag stays served without a receiver, so that one that restarts changes nothing. Default 5 s.
	Grace time.Duration
}

// Registry knows the registered receivers. Make one with [New].
type Registry struct {
	Config
	directory atomic.Pointer[directory] // the receivers that are called now
	changed   chan struct{}             // holds one element when the receivers are to be read at once
	unserved  pace
}

// New makes a registry. It calls no receiver before [Registry.Run].
func New(c Config) (*Registry, error) {
	if c.Store == nil || c.Scheduler == nil || c.Client == nil || c.Log == nil {
		return nil, errors.New("push: a part of the configuration is missing")
	}
	if c.Options == nil {
		c.Options = func(string) []processor.RegisterOption { return nil }
	}
	c.Every, c.Grace = cmp.Or(c.Every, time.Second), cmp.Or(c.Grace, 5*time.Second)
	r := &Registry{Config: c, changed: make(chan struct{}, 1)}
	r.directory.Store(&directory{})
	return r, nil
}

// List returns the receivers that are alive.
func (r *Registry) List(ctx context.Context) ([]wire.Receiver, error) {
	receivers, _, err := r.Store.Receivers(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]wire.Receiver, len(receivers))
	for i, w := range receivers {
		all[i] = shown(w)
	}
	return all, nil
}

// Get returns one receiver. For about an hour it finds one that has expired, too. It returns a *[wire.Problem]
// when it knows no such receiver.
func (r *Registry) Get(ctx context.Context, id int64) (wire.Receiver, error) {
	w, there, err := r.Store.Receiver(ctx, id)
	if err != nil {
		return wire.Receiver{}, err
	}
	if !there {
		return wire.Receiver{}, NotFound()
	}
	return shown(w), nil
}

// Known returns the receiver of an application and address, expired or not, and reports whether it is there.
func (r *Registry) Known(ctx context.Context, app, address string) (wire.Receiver, bool, error) {
	w, there, err := r.Store.ReceiverAt(ctx, app, address)
	return shown(w), there, err
}

// Heartbeat extends a receiver by its ttl from now. It revives one that has expired: an outage of the database must not
// force all of them to register anew. It returns a *[wire.Problem] when it knows no such receiver.
func (r *Registry) Heartbeat(ctx context.Context, id int64) (wire.Receiver, error) {
	there, err := r.Store.Heartbeat(ctx, id)
	if err != nil {
		return wire.Receiver{}, err
	}
	if !there {
		return wire.Receiver{}, NotFound()
	}
	return r.Get(ctx, id)
}

// Remove ends the calls to an address; it may finish the tasks that it has. Other processes know it within a second. It
// returns a *[wire.Problem] when it knows no such receiver.
func (r *Registry) Remove(ctx context.Context, id int64) error {
	there, err := r.Store.DeleteReceiver(ctx, id)
	if err != nil {
		return err
	}
	if !there {
		return NotFound()
	}
	r.look()
	return nil
}

// look makes Run read the receivers at once.
func (r *Registry) look() {
	select {
	case r.changed <- struct{}{}:
	default: // it is going to
	}
}

func (r *Registry) reserved(tag string) bool { return slices.Contains(r.Reserved, tag) }

func shown(w row.Receiver) wire.Receiver {
	return wire.Receiver{
		ID: wire.ID(w.ID), App: w.App, Address: w.Address, Tags: append([]string{}, w.Tags...), Signed: w.Secret != nil,
		TTLMS: w.TTL.Milliseconds(), Created: wire.Time(w.Created.Std()), Expires: wire.Time(w.Expires.Std()),
	}
}

// NotFound is the answer to an unknown id, and to one whose receiver the caller may not see.
func NotFound() *wire.Problem {
	return wire.NewProblem(http.StatusNotFound, wire.CodeNotFound,
		"there is no such receiver: it was removed, or forgotten because its heartbeats stayed away; register it again")
}
