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

// Store keeps the workers. The store of the database implements it.
type Store interface {
	SaveWorker(ctx context.Context, w row.Worker) (row.Worker, error)
	Heartbeat(ctx context.Context, id int64) (bool, error)
	DeleteWorker(ctx context.Context, id int64) (bool, error)
	Worker(ctx context.Context, id int64) (row.Worker, bool, error)
	WorkerAt(ctx context.Context, app, address string) (row.Worker, bool, error) // expired or not
	Workers(ctx context.Context) ([]row.Worker, row.Reading, error)
	CountWorkers(ctx context.Context) (int, error) // those that have expired included
	PurgeWorkers(ctx context.Context) (int, error)
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
	Secrets   *encrypted.Box // nil: workers that have a secret are refused
	Log       *slog.Logger

	// Reserved are the tags that the service serves by itself: workers cannot register for them.
	Reserved []string
	// Options are those of a tag that is served by workers. Default: none.
	Options func(tag string) []processor.RegisterOption
	// Every is how often the live workers are read, by one query. Default 1 s.
	Every time.Duration
	// Grace is how long a tag stays served without a worker, so that one that restarts changes nothing. Default 5 s.
	Grace time.Duration
}

// Registry knows the registered workers. Make one with [New].
type Registry struct {
	Config
	directory atomic.Pointer[directory] // who is called at this moment
	changed   chan struct{}             // holds one element when the workers are to be read at once
	unserved  pace
}

// New makes a registry, in which nobody is called before [Registry.Run].
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

// List returns the workers that are alive.
func (r *Registry) List(ctx context.Context) ([]wire.Worker, error) {
	workers, _, err := r.Store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]wire.Worker, len(workers))
	for i, w := range workers {
		all[i] = shown(w)
	}
	return all, nil
}

// Get returns one worker. For about an hour it finds one that has expired, too. It returns a *[wire.Problem] when there is
// none.
func (r *Registry) Get(ctx context.Context, id int64) (wire.Worker, error) {
	w, there, err := r.Store.Worker(ctx, id)
	if err != nil {
		return wire.Worker{}, err
	}
	if !there {
		return wire.Worker{}, NotFound()
	}
	return shown(w), nil
}

// Known returns the worker of an application and address, expired or not, and reports whether it is there.
func (r *Registry) Known(ctx context.Context, app, address string) (wire.Worker, bool, error) {
	w, there, err := r.Store.WorkerAt(ctx, app, address)
	return shown(w), there, err
}

// Heartbeat lets a worker live for its ttl from now. One that has expired lives again: an outage of the database must not force
// all of them to register anew. It returns a *[wire.Problem] when there is none.
func (r *Registry) Heartbeat(ctx context.Context, id int64) (wire.Worker, error) {
	there, err := r.Store.Heartbeat(ctx, id)
	if err != nil {
		return wire.Worker{}, err
	}
	if !there {
		return wire.Worker{}, NotFound()
	}
	return r.Get(ctx, id)
}

// Remove calls an address no more; what it has taken, it may finish. Other processes know it within a second. It returns a
// *[wire.Problem] when there is none.
func (r *Registry) Remove(ctx context.Context, id int64) error {
	there, err := r.Store.DeleteWorker(ctx, id)
	if err != nil {
		return err
	}
	if !there {
		return NotFound()
	}
	r.look()
	return nil
}

// look lets Run read the workers at once.
func (r *Registry) look() {
	select {
	case r.changed <- struct{}{}:
	default: // it is going to
	}
}

func (r *Registry) reserved(tag string) bool { return slices.Contains(r.Reserved, tag) }

func shown(w row.Worker) wire.Worker {
	return wire.Worker{
		ID: wire.ID(w.ID), App: w.App, Address: w.Address, Tags: append([]string{}, w.Tags...), Signed: w.Secret != nil,
		TTLMS: w.TTL.Milliseconds(), Created: wire.Time(w.Created.Std()), Expires: wire.Time(w.Expires.Std()),
	}
}

// NotFound is the answer to an id that no worker has, and to one whose worker the caller may not know of.
func NotFound() *wire.Problem {
	return problem(http.StatusNotFound, wire.CodeNotFound, "there is no such worker: it was removed, or forgotten because its "+
		"heartbeats stayed away; register it again")
}

func problem(status int, code, detail string) *wire.Problem {
	return &wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}
