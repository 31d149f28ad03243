// Package decide decides what becomes of the ticks of a schedule: which run, when, and what is written of those that
// do not. It knows no database and no clock. It is told the state of a schedule and of its open runs, and returns a
// [row.Decision], which a store applies as a whole or not at all.
//
// A tick is an instant that the definition names. A run is the task of a tick. The cursor is the first tick that is not
// decided. A run is open until its end was collected.
//
//   - ticks.go: the ticks, their due times, and the jitter between them.
//   - plan.go: the steps of a decision, and when to look again.
//   - overlap.go: ticks that fell due while the allowed number of runs was open.
//   - missed.go: ticks that were not decided in time.
//   - outage.go: runs that were planted, and that an outage kept from beginning.
//   - run.go: the task of a run, and the rows of the history.
//   - standing.go: how many ticks wait, for the metrics.
//   - operate.go: what operators and programs do: pause, resume, trigger, skip, reset, edit, retire.
//   - backfill.go: schedules that run the past ticks of others.
//   - hash.go: what tells equal definitions.
package decide
