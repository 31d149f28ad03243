package delaytask

import (
	"testing"

	"go.opentelemetry.io/otel/propagation"
)

func TestTracingThatIsOffAllocatesNothing(t *testing.T) { // not in parallel: allocations of others would count
	tr := newTracing(&Config{Propagator: propagation.TraceContext{}}, nil)
	ctx, items := t.Context(), []Item{{Tag: "t"}}
	headers := map[string]string{"a": "b"}
	if n := testing.AllocsPerRun(100, func() {
		one, span := tr.send(ctx, "t")
		all, _ := tr.sendAll(one, items)
		tr.join(headers, tr.carried(all))
		endSend(span, 7, nil)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
