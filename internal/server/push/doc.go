// Package push calls registered receivers back: addresses of applications, each with the tags whose tasks it takes. The
// database stores them, so that every process of the service knows them. They expire when their heartbeats stop.
//
// [Registry] answers the calls that register them, and [Registry.Run] keeps the scheduler's processors in step with
// them: a process serves a tag while a receiver is registered for it. A task goes to one address at a time, in turn,
// and to another one when that does not answer. [Static] is a receiver of the configuration instead.
package push
