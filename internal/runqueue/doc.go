// Package runqueue knows which rows this process may run, and which of them next: timers, ready queues of each tag, slots, and
// tasks on probation. It is a table that is told and asked: it has no store and starts no goroutine.
package runqueue
