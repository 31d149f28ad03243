package processor

import "context"

// Forward makes a processor of p, which runs no task itself but hands each to somebody else, such as a receiver on
// the network. A task of it has not started when p is called, but when p says so by [Started]: what is measured as
// its lateness includes the wait for somebody who takes it, also over several attempts. A task that p completes or
// passes on by [HandOver] has started then at the latest. Register what Forward returns as it is; middleware belongs
// into [Use]. A nil p stays nil.
func Forward(p Processor) Processor {
	if isNil(p) {
		return nil
	}
	return forwarder{p}
}

type forwarder struct{ Processor }

// Started tells that the task of a [Forward] has been handed to somebody who can run it. ctx is the one that the
// processor was called with, or made of it. It does nothing when that is told already, after the processor has
// returned, and where the processor is no Forward or the context is not one that a processor was called with.
func Started(ctx context.Context) {
	if lease, ok := ctx.Value(leaseKey{}).(Lease); ok {
		lease.Started()
	}
}
