package lifecycle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimiter keeps the log readable when thousands of tasks meet the same fault. In a window of one second a message is
// written once for each tag, and for at most ten tags. The last line that was not is written at the window's end, and
// says in held_back how many more there were. An outage refuses all operations of the database: their window is five
// seconds, and doubles up to half a minute while lines are held back.
type logLimiter struct {
	slog.Handler
	*logWindows
}

type logWindows struct {
	mu        sync.Mutex
	closed    bool
	byMessage map[string]*logWindow // messages are constants, so there are few
	flushes   sync.WaitGroup        // that write
}

type logWindow struct {
	span    time.Duration
	end     time.Time
	written map[string]bool // by tag or operation
	held    int             // lines since the last one that was written
	subject string          // of the last of them
	last    func(held int)  // writes it
}

const (
	logEvery       = time.Second
	logOutageEvery = 5 * time.Second
	logOutageMost  = 30 * time.Second
	logSubjects    = 10
)

func newLogLimiter(log *slog.Logger) logLimiter {
	return logLimiter{log.Handler(), &logWindows{byMessage: map[string]*logWindow{}}}
}

func (l logLimiter) Handle(ctx context.Context, r slog.Record) error {
	held, now := l.admit(r, func(held int) { _ = l.write(context.WithoutCancel(ctx), r, held) })
	if !now {
		return nil
	}
	return l.write(ctx, r, held)
}

func (l logLimiter) write(ctx context.Context, r slog.Record, held int) error {
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("held_back", held))
	}
	return l.Handler.Handle(ctx, r)
}

func (l logLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logLimiter{l.Handler.WithAttrs(attrs), l.logWindows}
}

func (l logLimiter) WithGroup(name string) slog.Handler {
	return logLimiter{l.Handler.WithGroup(name), l.logWindows}
}

// admit reports whether the line is to be written now, and how many of its message were not since the last one.
func (l *logWindows) admit(r slog.Record, later func(held int)) (held int, now bool) {
	every, subject := logEvery, ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "tag":
			subject = a.Value.String()
		case "op":
			every, subject = logOutageEvery, a.Value.String()
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, true
	}
	w := l.byMessage[r.Message]
	if w == nil {
		w = &logWindow{written: map[string]bool{}}
		l.byMessage[r.Message] = w
	}
	if !time.Now().Before(w.end) {
		w.begin(every)
	}
	if w.written[subject] || len(w.written) == logSubjects {
		if w.held == 0 {
			time.AfterFunc(time.Until(w.end), func() { l.flush(w, every) })
		}
		w.held, w.subject, w.last = w.held+1, subject, later
		return 0, false
	}
	w.written[subject] = true
	held, w.held = w.held, 0
	return held, true
}

// begin begins the next window. Where lines of an outage are held back, it is longer than the last one.
func (w *logWindow) begin(every time.Duration) {
	if w.held > 0 && every == logOutageEvery {
		every = min(2*w.span, logOutageMost)
	}
	w.span, w.end = every, time.Now().Add(every)
	clear(w.written)
}

// flush writes the last line that was held back, unless a later line has counted it.
func (l *logWindows) flush(w *logWindow, every time.Duration) {
	l.mu.Lock()
	held, last := w.held, w.last
	if held == 0 || time.Now().Before(w.end) && !l.closed {
		l.mu.Unlock()
		return
	}
	w.begin(every)
	w.held, w.last = 0, nil
	w.written[w.subject] = true
	l.flushes.Add(1)
	defer l.flushes.Done()
	l.mu.Unlock()
	last(held - 1)
}

// close writes what is held back. Later lines are written at once.
func (l *logWindows) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, w := range l.byMessage { // no line is added any more
		l.flush(w, logEvery)
	}
	l.flushes.Wait()
}
