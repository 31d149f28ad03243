package core

import (
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/store"
)

// Handle is what a *scheduler.Scheduler embeds. Its method is unexported, so that users cannot call it.
type Handle struct{ core *Core }

// NewHandle returns the handle of a core.
func NewHandle(c *Core) Handle { return Handle{c} }

func (h Handle) of() *Core { return h.core }

// Of returns the core of a *scheduler.Scheduler.
func Of(s interface{ of() *Core }) *Core { return s.of() }

// Builder is what a scheduler.Config embeds: a store and an engine that the caller makes. Users cannot set it.
type Builder struct {
	store store.Store
	build func(engine.Config) (*engine.Engine, error)
}

func (b *Builder) builder() *Builder { return b }

// BuildOn makes the New of package scheduler take a store in place of a database, and the engine that build returns.
// build gets what is made of the config and of its defaults. cfg is a *scheduler.Config.
func BuildOn(
	cfg interface{ builder() *Builder }, st store.Store, build func(engine.Config) (*engine.Engine, error),
) {
	*cfg.builder() = Builder{st, build}
}

// Built returns what BuildOn has set, nil if nothing is.
func Built(b *Builder) (store.Store, func(engine.Config) (*engine.Engine, error)) {
	return b.store, b.build
}
