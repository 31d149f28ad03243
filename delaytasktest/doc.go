// Package delaytasktest lets tests of code that uses delaytask run without a server and without sleeping.
//
// [New] returns a scheduler on a database in memory, with a clock that stands still until the test moves it. It embeds
// a real *scheduler.Scheduler. The code under test gets that, or any interface that it implements, and needs no change:
//
//	s := delaytasktest.New(t)
//	orders := shop.NewOrders(s.Scheduler) // registers processors and saves tasks, as it always does
//	orders.Place(ctx, 7)
//	s.RequireSaved(t, "order.close", delaytasktest.Body(7), delaytasktest.Delay(30*time.Minute))
//	delaytasktest.RequireSavedOf(t, s, shop.CloseOrder, delaytasktest.Key("7")) // by its Kind, body decoded
//	s.Advance(30 * time.Minute) // runs what falls due, in order, before it returns
//
// The same code as in production decides what runs and when, including retries, snoozes, timeouts and leases that end.
// An attempt's timeout goes by the test's clock, which moves on while a processor runs only if the test says so, by
// [Scheduler.Outage]. A processor that waits for it does not hang the test: after 5 seconds of waiting, which pass at
// once in a bubble of testing/synctest, the clock goes on to the timeout.
//
// Three things differ. Tasks run one at a time, in the goroutine of the test. Backoffs have no jitter, unless the
// config has a backoff. And transactions of the caller have no effect: what is saved, changed or completed in one
// counts at once, even if it is rolled back later. A pool is refused as in production.
package delaytasktest
