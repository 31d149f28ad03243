// Package push calls registered receivers back: addresses of applications, each with the tags whose tasks it takes.
// They stand in the database, so that every process of the service knows them, and are forgotten when their heartbeats
// stay away.
//
// [Registry] answers the calls that register them, and [Registry.Run] keeps the scheduler's processors in step with
// them: a tag is served by a process while somebody is registered for it. A task goes to one address at a time, in
// turn, and to another one when that does not answer. [Static] is a receiver that stands in the configuration instead.
package push
