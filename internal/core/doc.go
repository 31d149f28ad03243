// Package core is the scheduler without its face: what package scheduler, the service, the dashboard, the command and
// the test kit hold. It checks arguments, translates between public values and rows, and calls the engine. A method
// that *scheduler.Scheduler also has is documented there.
//
//   - of.go: how other packages of this module get at the core of a scheduler, and make one on an engine of theirs.
//   - core.go: what a core stands on; start and stop.
//   - save.go, pop.go, change.go, task.go: tasks. list.go, cursor.go, watch.go: lists, waits and events of them.
//   - operate.go: tags and nodes. schedule.go, spec.go: schedules.
//   - audit.go, explain.go, explainschedule.go, failures.go, forecast.go, overview.go, series.go, stats.go: reports.
//   - tracing.go: the spans of saves and attempts.
package core
