package otlp

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// The outcomes of spans.
const (
	Sent     = "sent"
	Overflow = "overflow" // the queue was full
	Failed   = "failed"   // the collector did not take them
)

var errFull = errors.New("the queue of spans is full: they end faster than the collector takes them")

// ledger counts every span from its end until the collector has it, before and behind the SDK's queue: the SDK does not
// expose how many it drops. It admits no more than that queue holds, so nothing is lost inside.
type ledger struct {
	host    string
	most    int64
	waiting atomic.Int64
	count   func(result string, spans int)

	log     *slog.Logger
	limiter *rate.Limiter
	lost    atomic.Int64 // spans, since the last line
}

// logEvery is the least time between two lines about lost spans.
const logEvery = time.Minute

func newLedger(s Settings, count func(string, int), log *slog.Logger) *ledger {
	return &ledger{
		host: s.Host(), most: int64(s.queue), count: count,
		log: log, limiter: rate.NewLimiter(rate.Every(logEvery), 1),
	}
}

func (l *ledger) drop(result string, spans int, why error) {
	l.count(result, spans)
	l.lost.Add(int64(spans))
	if l.limiter.Allow() {
		l.logLost(why)
	}
}

func (l *ledger) logLost(why error) {
	if lost := l.lost.Swap(0); lost > 0 {
		l.log.Warn("spans are lost; the collector does not take them", "collector", l.host, "spans", lost, "err", why)
	}
}

// admitting passes spans on to the queue of the processor.
type admitting struct {
	trace.SpanProcessor
	ledger *ledger
}

// OnEnd never waits.
func (a admitting) OnEnd(s trace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if a.ledger.waiting.Add(1) > a.ledger.most {
		a.ledger.waiting.Add(-1)
		a.ledger.drop(Overflow, 1, errFull)
		return
	}
	a.SpanProcessor.OnEnd(s)
}

// settling records the outcome of a batch.
type settling struct{ *Exporter }

// ExportSpans returns no error: the SDK would pass it to a handler that the whole process shares.
func (s settling) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	s.courier.failure = nil
	sent := make([]trace.ReadOnlySpan, len(spans))
	for i, span := range spans {
		sent[i] = masked{span, s.mask}
	}
	err := s.exporter.ExportSpans(ctx, sent)
	s.ledger.waiting.Add(-int64(len(spans)))
	if err == nil {
		s.ledger.count(Sent, len(spans))
		return nil
	}
	if s.courier.failure != nil { // that quotes no secret
		err = s.courier.failure
	}
	s.ledger.drop(Failed, len(spans), err)
	return nil
}

// Shutdown comes after the last batch.
func (s settling) Shutdown(ctx context.Context) error {
	defer close(s.ended)
	return s.exporter.Shutdown(ctx)
}
