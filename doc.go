// Package delaytask runs a piece of work later: durably, on time, on the MySQL or MariaDB that a service already has,
// or on an embedded SQLite file.
//
//	tasks, err := scheduler.Open(ctx, "user:password@tcp(db:3306)/shop", scheduler.Config{Migrate: true})
//	…
//	tasks.Register("order.close", processor.Typed(closeOrder))
//	tasks.Start(ctx)
//	defer tasks.Stop(context.WithoutCancel(ctx)) // a signal may have ended ctx, and running tasks still finish
//	…
//	tasks.SaveDelayTask(ctx, "order.close", order, 30*time.Minute)
//
// This package has the values of tasks and schedules, their options, and the errors. Three constructors give what works
// with them, with the same methods: scheduler.Open on the program's own database, client.New on the service, and
// delaytasktest.New in memory. Package processor has what runs tasks, and package report what operators read.
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
// with processor.CompleteTx in the transaction that does the work, which then happens exactly once.
//
// A nil error completes the task. Any other error spends one of its attempts, and the next one follows after a backoff
// that doubles; when they are used up the task stays as failed, with its errors, until it is retried.
// processor.Permanent fails it at once, processor.RetryAfter names the wait, processor.Snooze puts the task off and
// spends nothing. A panic is an error with a stack.
//
// Pop hands due tasks out without a processor, and processor.HandOver passes one on that a processor was called with.
// The [Token] of such a task ends it from any process, with Finish, Fail or Release.
//
// A running task holds a lease, which is renewed while it runs. When its process dies the lease ends, within
// scheduler.Config.TTR, and the task starts again elsewhere; a crash spends no attempt. A task that kills its process
// again and again is quarantined.
//
// # Saving
//
// SaveDelayTask stores one task, SaveDelayTasks many, and SaveDelayTaskTx one that exists if and only if the caller's
// transaction commits. With [WithKey] at most one unfinished task carries a key; saving another one returns the id of
// the first with [ErrDuplicate]. When a reply of the database is lost, the save finds out what happened. If ctx ends
// before that, the error is [ErrOutcomeUnknown], and saving again with its id is safe. If ctx ends before anything was
// sent, the error is [ErrNotStored] with the cause.
//
// A plain INSERT of tag, message_body and delay_time works as well, from any language.
//
// # Operating
//
// Cancel, Reschedule, SetBody and Retry change one task, by id or by key; CancelAll and RetryAll all that match a
// filter. Pause holds a tag back on all nodes. Explain says why a task has not run, and Tags which tags are served or
// paused. Stats counts the tasks of each, and Lateness measures how punctual one was lately. Nodes lists the nodes, and
// scheduler.Metrics is for monitoring.
//
// Stop costs nothing: what is interrupted is released at once, loses no attempt, and another node takes it. Let a
// second signal kill the process:
//
//	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	<-ctx.Done()
//	cancel() // from here on a signal kills
//	tasks.Stop(context.Background())
//
// # Times
//
// All times come from the database's clock, in UTC. The clocks of the machines that run tasks are not trusted.
//
// # Testing
//
// Package delaytasktest runs a scheduler in memory whose time the test controls, without a server and without sleeping.
package delaytask
