// Package seam lets package delaytasktest make a scheduler on an engine of its own, without an exported constructor that users
// would see and could not call. It holds one function, which package delaytask sets when it is initialised and nobody sets again.
package seam

import "github.com/delaytask/delaytask/internal/engine"

// NewScheduler returns a *delaytask.Scheduler on the store. cfg is a delaytask.Config; build gets what is made of it and of the
// defaults, and returns the engine. The types are any because this package lies below delaytask.
var NewScheduler func(
	cfg any, store engine.Store, build func(engine.Config) (*engine.Engine, error),
) (scheduler any, err error)
