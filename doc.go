// Package delaytask runs a piece of work later: durably, on time, on the MySQL or MariaDB that a service already has,
// or on an embedded SQLite file.
//
//	scheduler, err := delaytask.Open(ctx, "user:password@tcp(db:3306)/shop", delaytask.Config{Migrate: true})
//	…
//	scheduler.Register("order.close", processor.Typed(closeOrder))
//	scheduler.Start(ctx)
//	defer scheduler.Stop(context.WithoutCancel(ctx)) // ctx may be what a signal ends, and what runs shall still finish
//	…
//	scheduler.SaveDelayTask(ctx, "order.close", order, 30*time.Minute)
//
// # What happens
//
// A save inserts one row into the table delay_task_message and returns when that is committed. Shortly before the due
// time, at most 100 ms, exactly one process claims the row. At the due time, to the millisecond and never before it, it
// calls the processor that is registered for the tag. The table is the queue: what a process holds in memory is only a
// cache of it, so a process may die at any moment, and another one carries on. Any number of processes share the work
// without being configured for it.
//
// # What a processor may rely on
//
// A task runs at least once. It may run twice, when a process dies or loses its database in the middle. So make the
// work idempotent, or pass Task.ID and Task.Version to systems that can refuse an older attempt. Or complete the task
// with [CompleteTx] in the transaction that does the work, which then happens exactly once.
//
// A nil error completes the task. Any other error spends one of its attempts, and the next one follows after a backoff
// that doubles; when they are used up the task stays as failed, with its errors, until it is retried.
// [processor.Permanent] fails it at once, [processor.RetryAfter] names the wait, [processor.Snooze] puts the task off
// and spends nothing. A panic is an error with a stack.
//
// [Scheduler.Pop] hands due tasks out without a processor, and [processor.HandOver] passes one on that a processor was
// called with. The [Token] of such a task ends it from any process, with [Scheduler.Finish], [Scheduler.Fail] or
// [Scheduler.Release].
//
// A running task holds a lease, which is renewed while it runs. When its process dies the lease ends, within
// [Config].TTR, and the task starts again elsewhere; a crash spends no attempt. A task that kills its process again and
// again is quarantined.
//
// # Saving
//
// [Scheduler.SaveDelayTask] stores one task, [Scheduler.SaveDelayTasks] many, and [Scheduler.SaveDelayTaskTx] one that
// exists if and only if the caller's transaction commits. With [WithKey] at most one unfinished task carries a key;
// saving another one returns the id of the first with [ErrDuplicate]. When a reply of the database is lost, the save
// finds out what happened. If ctx ends before that, the error is [ErrOutcomeUnknown], and saving again with its id is
// safe.
//
// A plain INSERT of tag, message_body and delay_time works as well, from any language.
//
// # Operating
//
// [Scheduler.Cancel], [Scheduler.Reschedule], [Scheduler.SetBody] and [Scheduler.Retry] change one task, by id or by
// key; [Scheduler.CancelAll] and [Scheduler.RetryAll] all that match a filter. [Scheduler.Pause] holds a tag back on
// all nodes. [Scheduler.Explain] says why a task has not run, and [Scheduler.Tags] which tags are served or paused.
// [Scheduler.Stats] counts the tasks of each, and [Scheduler.Lateness] measures how punctual one was lately.
// [Scheduler.Nodes] lists the nodes, and [Metrics] is for monitoring.
//
// [Scheduler.Stop] costs nothing: what is interrupted is released at once, loses no attempt, and another node takes it.
// Let a second signal kill the process:
//
//	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	<-ctx.Done()
//	cancel() // from here on a signal kills
//	scheduler.Stop(context.Background())
//
// # Times
//
// All times are those of the database's clock, in UTC. The clocks of the machines that run tasks are not trusted.
//
// # Testing
//
// Package delaytasktest runs a scheduler in memory whose time the test controls, without a server and without sleeping.
package delaytask
