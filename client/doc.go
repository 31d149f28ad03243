// Package client calls the delaytask service over HTTP, with the methods and options of the library:
//
//	tasks, err := client.New("http://127.0.0.1:8080", client.WithAccessToken(os.Getenv("DELAYTASK_TOKEN")))
//	…
//	tasks.Register("order.close", processor.Typed(closeOrder))
//	tasks.Start(ctx)
//	defer tasks.Stop(context.WithoutCancel(ctx))
//	…
//	tasks.SaveDelayTask(ctx, "order.close", order, 30*time.Minute)
//
// A program that uses [processor.Scheduler] moves between this and the library by changing the constructor. Two
// things differ: there are no transactions, and times of stored tasks are in whole milliseconds.
//
// # When no answer comes
//
// A save draws its id before anything is sent. It is repeated with that id until an answer comes, which cannot store
// the task twice. When the retry time is over, its error holds the id ([delaytask.OutcomeUnknownError]). Reading,
// Pause, Resume, Finish and Touch are repeated as well. Cancel, Reschedule and Retry are repeated only where the
// service has certainly done nothing; otherwise the error is [ErrNoAnswer], and Get tells what became of them.
//
// # Processors
//
// Start takes due tasks of the registered tags by long polls, as many as there are free slots. It renews their leases
// while they run, and reports the results. Stop takes no more, and gives back what it could not finish without spending
// an attempt.
//
// # Receivers
//
// [Client.Receiver] makes a handler that the service calls with tasks, for a program that can be reached:
//
//	receiver, err := tasks.Receiver("shop", "https://shop.example.com/hooks", client.ReceiverSecret(secret))
//	receiver.Register("order.close", processor.Typed(closeOrder))
//	http.Handle("/hooks", receiver)
//	receiver.Start(ctx)
//	defer receiver.Stop(context.WithoutCancel(ctx))
//
// It registers itself and its tags, renews that, and runs only what the service has signed.
package client
