package wake

import (
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// pause is between two datagrams to one process. Notices of that time travel together.
	pause = 2 * time.Millisecond
	// firstRetry is how long a sender waits for an acknowledgement. Each further wait is twice as long.
	firstRetry = 10 * time.Millisecond
	// giveUpAfter is five waits. Then the process counts as unreachable.
	giveUpAfter = 310 * time.Millisecond
	// probePause is between two datagrams to a process that is unreachable. Notices are sent once.
	probePause = 100 * time.Millisecond
	// forgetAfter is how long a process that nothing is told to keeps its socket.
	forgetAfter = time.Minute
	// mostOpen bounds the notices that wait for their datagram. The process finds the others in the table, later.
	mostOpen = 10_000
	// lastDatagrams bounds what a process sends at its end.
	lastDatagrams = 16
)

// sender sends to one process until it acknowledges. Its socket is connected, so it takes answers from there alone.
type sender struct {
	token   [tokenSize]byte
	metrics metrics.Recorder
	rates   *rates        // of all senders of this process
	wake    chan struct{} // capacity 1
	done    chan struct{}

	mu          sync.Mutex
	conn        net.Conn // nil before the first send, and after the address has changed
	address     netip.AddrPort
	key, before row.WakeKey
	open        map[key]Notice     // to be sent
	flying      map[uint64]*flight // by the id of the datagram
	waiting     time.Time          // since when nothing was acknowledged; zero while nothing is sent
	retry       time.Duration
	roundTrip   time.Duration // smoothed
	unreachable bool          // see Endpoint.Row
	acked       bool          // the process at this address has acknowledged a datagram
	used        time.Time
}

// flight is a datagram that is not acknowledged.
type flight struct {
	notices []Notice // nil when they were sent again
	at      time.Time
}

func newSender(token [tokenSize]byte, m metrics.Recorder, r *rates) *sender {
	return &sender{
		token: token, metrics: m, rates: r, wake: make(chan struct{}, 1), done: make(chan struct{}),
		open: map[key]Notice{}, flying: map[uint64]*flight{},
	}
}

// tell adds notices. It does not wait.
func (s *sender) tell(address netip.AddrPort, k row.WakeKey, notices []Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if address != s.address {
		s.disconnect()
		s.address, s.acked = address, false
	}
	if string(k) != string(s.key) {
		s.before, s.key = s.key, k
	}
	s.add(notices)
	s.used = time.Now()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// add merges notices into those that wait. The caller locks.
func (s *sender) add(notices []Notice) {
	for _, n := range notices {
		old, known := s.open[n.key()]
		switch {
		case known:
			s.open[n.key()] = old.Merge(n)
		case len(s.open) < mostOpen && len(n.Tag) <= math.MaxUint8:
			s.open[n.key()] = n
		}
	}
}

// loop sends until the endpoint closes, or nothing was told for forgetAfter.
func (s *sender) loop() {
	alarm := time.NewTimer(forgetAfter)
	defer alarm.Stop()
	for {
		fresh := false
		select {
		case <-s.wake:
			fresh = true
		case <-alarm.C:
		case <-s.done:
			return
		}
		select {
		case <-time.After(s.turn()):
		case <-s.done:
			return
		}
		wait, over := s.send(fresh)
		if over {
			return
		}
		alarm.Reset(wait)
		select {
		case <-time.After(s.pause()):
		case <-s.done:
			return
		}
	}
}

// finish sends what a process tells that ends. The caller locks.
func (s *sender) finish() {
	s.takeBack(0)
	for i := 0; i < lastDatagrams && len(s.open) > 0 && (s.known() || s.rates.free(s.address.Addr())); i++ {
		s.sendOne()
	}
	s.disconnect()
}

// known reports whether the process has answered from the address lately. The caller locks.
func (s *sender) known() bool { return s.acked && !s.unreachable }

// turn returns in how long a datagram may be sent to the host.
func (s *sender) turn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known() {
		return 0
	}
	return s.rates.turn(s.address.Addr())
}

func (s *sender) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return probePause
	}
	return pause
}

// send sends a datagram with what is not acknowledged in time, and returns when the next one is to be sent. over says
// that the sender is not used any more.
func (s *sender) send(fresh bool) (wait time.Duration, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := min(max(firstRetry, 2*s.roundTrip), giveUpAfter/2)
	if fresh || s.retry == 0 {
		s.retry = first
	}
	next, late := s.takeBack(s.retry)
	if late && !fresh {
		s.retry *= 2
	}
	if len(s.open) == 0 {
		if next == 0 {
			return forgetAfter, time.Since(s.used) >= forgetAfter
		}
		return next, false
	}
	if s.waiting.IsZero() {
		s.waiting = time.Now()
	}
	if !s.unreachable && time.Since(s.waiting) >= giveUpAfter {
		s.unreachable = true
		s.metrics.Woke(metrics.WakeLost)
	}
	s.sendOne()
	switch {
	case s.unreachable: // the process finds it in the table, later
		clear(s.open)
		for _, f := range s.flying {
			f.notices = nil
		}
		return forgetAfter, false
	case len(s.open) > 0:
		return pause, false
	case next > 0:
		return next, false
	default:
		return s.retry, false
	}
}

// takeBack puts notices that were not acknowledged in time back among the waiting ones, and reports whether there were
// any. It returns in how long there are others, 0 for none. The caller locks.
func (s *sender) takeBack(after time.Duration) (next time.Duration, late bool) {
	for id, f := range s.flying {
		age := time.Since(f.at)
		switch {
		case f.notices == nil:
			if age > giveUpAfter {
				delete(s.flying, id)
			}
		case age >= after:
			s.add(f.notices)
			f.notices, late = nil, true
		case next == 0 || after-age < next:
			next = after - age
		}
	}
	return next, late
}

// sendOne sends one datagram, with as many notices as fit. The caller locks.
func (s *sender) sendOne() {
	all := slices.Collect(maps.Values(s.open))
	id := rand.Uint64()
	b, taken := packet(s.token, id, all, s.key)
	for _, n := range all[:taken] {
		delete(s.open, n.key())
	}
	s.flying[id] = &flight{all[:taken], time.Now()}
	if s.conn == nil && !s.connect() {
		return
	}
	// Who holds the lock must not wait for a network that is slow to take datagrams.
	_ = s.conn.SetWriteDeadline(time.Now().Add(pause))
	if _, err := s.conn.Write(b); err == nil { // what does not leave is not acknowledged either
		s.metrics.Woke(metrics.WakeSent)
	}
}

// connect opens the socket, and begins to read acknowledgements. The caller locks.
func (s *sender) connect() bool {
	conn, err := net.Dial("udp", s.address.String())
	if err != nil {
		return false
	}
	s.conn = conn
	go s.read(conn)
	return true
}

func (s *sender) disconnect() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

func (s *sender) read(conn net.Conn) {
	buf := make([]byte, MaxPacket)
	var allowed bucket
	for {
		allowed.wait()
		n, err := conn.Read(buf)
		s.mu.Lock()
		if s.conn != conn {
			s.mu.Unlock()
			return
		}
		if err == nil {
			s.heard(buf[:n])
		}
		s.mu.Unlock()
	}
}

// heard takes an acknowledgement. Notices since that datagram stay. The caller locks.
func (s *sender) heard(b []byte) {
	id, ok := acknowledged(b, s.token, s.key, s.before)
	f, known := s.flying[id]
	if !ok || !known {
		return
	}
	delete(s.flying, id)
	s.roundTrip = (3*s.roundTrip + time.Since(f.at)) / 4
	s.acked, s.unreachable, s.waiting = true, false, time.Time{}
	if s.pending() {
		s.waiting = time.Now()
	}
}

// pending reports whether anything is not acknowledged. The caller locks.
func (s *sender) pending() bool {
	for _, f := range s.flying {
		if f.notices != nil {
			return true
		}
	}
	return len(s.open) > 0
}
