// Package scheduler saves and runs tasks on the program's own database.
//
// Begin with [Open], or with [New] on a pool that the program has already. Register a processor for each tag, by
// [Scheduler.Register] or by the Process of a [processor.Kind], and call [Scheduler.Start]. [Scheduler.SaveDelayTask]
// and the Save of a Kind store a task, in a transaction [Scheduler.SaveDelayTaskTx] and SaveTx. [Scheduler.Stop] ends
// all in order. A program that only saves registers nothing, and needs no Start.
//
// Then, as they are needed: [Scheduler.DeclareSchedule] for what runs again and again, [Scheduler.Pop] for workers that
// ask, [Scheduler.Cancel], [Scheduler.Reschedule] and [Scheduler.Retry] for one task, [Scheduler.CancelAll] for many,
// [Scheduler.Explain] and [Scheduler.Overview] for people who look. [Config] has every setting with its default.
//
// Package delaytask says what a task may rely on.
package scheduler
