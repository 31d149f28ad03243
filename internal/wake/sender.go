package wake

import (
	"maps"
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
	// pause is between two sends to one process. What is told meanwhile travels together.
	pause = 2 * time.Millisecond
	// firstRetry is how long a sender waits for an acknowledgement. Each further wait is twice as long.
	firstRetry = 10 * time.Millisecond
	// giveUpAfter is five waits. Then the process counts as unreachable.
	giveUpAfter = 310 * time.Millisecond
	// probePause is between two sends to a process that is unreachable. What was told is sent once.
	probePause = 100 * time.Millisecond
	// forgetAfter is how long a process that nothing is told to keeps its socket.
	forgetAfter = time.Minute
	// mostFlying bounds the datagrams whose acknowledgements are waited for.
	mostFlying = 64
)

// sender sends to one process until it acknowledges. Its socket is connected, so it takes answers from there alone.
type sender struct {
	token   [tokenSize]byte
	metrics metrics.Recorder
	wake    chan struct{} // capacity 1
	done    chan struct{}

	mu          sync.Mutex
	conn        net.Conn // nil before the first send, and after the address has changed
	address     netip.AddrPort
	key, before row.WakeKey
	open        map[key]*unacked
	flying      map[uint64][]flight // by the id of the datagram
	waiting     time.Time           // since when nothing was acknowledged; zero while nothing is sent
	retry       time.Duration
	unreachable bool // see Endpoint.Row
	used        time.Time
}

// unacked is a notice that is not acknowledged.
type unacked struct {
	notice Notice
	merged int // how often something was merged into it
}

// flight is what a datagram carries of one.
type flight struct {
	*unacked
	merged int // by then; more may have come since
}

func newSender(token [tokenSize]byte, m metrics.Recorder) *sender {
	return &sender{
		token: token, metrics: m, wake: make(chan struct{}, 1), done: make(chan struct{}),
		open: map[key]*unacked{}, flying: map[uint64][]flight{},
	}
}

// tell adds notices. It does not wait.
func (s *sender) tell(address netip.AddrPort, k row.WakeKey, notices []Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if address != s.address {
		s.disconnect()
		s.address = address
	}
	if string(k) != string(s.key) {
		s.before, s.key = s.key, k
	}
	for _, n := range notices {
		if t := s.open[n.key()]; t != nil {
			t.notice = t.notice.Merge(n)
			t.merged++
		} else {
			s.open[n.key()] = &unacked{notice: n}
		}
	}
	s.used = time.Now()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop sends until the endpoint closes, or nothing was told for forgetAfter.
func (s *sender) loop() {
	defer func() {
		s.mu.Lock()
		if len(s.open) > 0 {
			s.sendAll() // what a process tells that ends
		}
		s.disconnect()
		s.mu.Unlock()
	}()
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

func (s *sender) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return probePause
	}
	return pause
}

// send sends what is not acknowledged, and returns when it is to be sent again. over says that the sender is not used
// any more.
func (s *sender) send(fresh bool) (wait time.Duration, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		return forgetAfter, time.Since(s.used) >= forgetAfter
	}
	if s.waiting.IsZero() {
		s.waiting = time.Now()
	}
	if !s.unreachable && time.Since(s.waiting) >= giveUpAfter {
		s.unreachable = true
		s.metrics.Woke(metrics.WakeLost)
	}
	s.sendAll()
	if s.unreachable { // the process finds it in the table, later
		clear(s.open)
		return forgetAfter, false
	}
	s.retry *= 2
	if fresh {
		s.retry = firstRetry
	}
	return s.retry, false
}

func (s *sender) sendAll() {
	if s.conn == nil && !s.connect() {
		return
	}
	if len(s.flying) > mostFlying {
		clear(s.flying)
	}
	all := slices.Collect(maps.Values(s.open))
	for len(all) > 0 {
		notices := make([]Notice, len(all))
		for i, t := range all {
			notices[i] = t.notice
		}
		id := rand.Uint64()
		b, taken := packet(s.token, id, notices, s.key)
		for _, t := range all[:taken] {
			s.flying[id] = append(s.flying[id], flight{t, t.merged})
		}
		all = all[taken:]
		s.metrics.Woke(metrics.WakeSent)
		_, _ = s.conn.Write(b) // what does not arrive is not acknowledged
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
	for {
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

// heard takes an acknowledgement. The caller locks.
func (s *sender) heard(b []byte) {
	id, ok := acknowledged(b, s.token, s.key, s.before)
	if !ok {
		return
	}
	for _, f := range s.flying[id] {
		if k := f.notice.key(); f.merged == f.unacked.merged && s.open[k] == f.unacked {
			delete(s.open, k)
		}
	}
	delete(s.flying, id)
	s.unreachable, s.waiting = false, time.Time{}
	if len(s.open) > 0 {
		s.waiting = time.Now()
	}
}
