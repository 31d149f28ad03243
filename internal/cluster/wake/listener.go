package wake

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// renewEvery is how long a key is written into the node's row by default. It is taken for as long again.
	renewEvery = time.Hour
	keySize    = 32

	// perSecond bounds how many datagrams are read, so that a flood costs little. The kernel drops the rest.
	perSecond = 2000
	burst     = 100
	// refill is how many are read in a row once the bound is reached: a flood then costs few turns.
	refill = 20
	// kernelBuffer is small: what waits there when a flood ends is read first.
	kernelBuffer = 64 << 10
	// ackWait is how long an acknowledgement waits for a network that is slow to take it.
	ackWait = time.Millisecond
)

// listener receives what others tell this process.
type listener struct {
	conn    *net.UDPConn
	token   [tokenSize]byte
	hear    func([]Notice)
	metrics metrics.Recorder
	renew   time.Duration

	mu          sync.Mutex
	key, before row.WakeKey
	renewed     time.Time
}

func newListener(at *net.UDPAddr, token [tokenSize]byte, hear func([]Notice), cfg Config) (*listener, error) {
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, err
	}
	// The kernel may give more or less, which does no harm.
	_ = conn.SetReadBuffer(kernelBuffer)
	return &listener{
		conn: conn, token: token, hear: hear, metrics: cfg.Metrics, renew: cmp.Or(cfg.Renew, renewEvery),
	}, nil
}

// current returns the key that others sign with, and renews it when its time is over.
func (l *listener) current() row.WakeKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.renewed) >= l.renew {
		fresh := make(row.WakeKey, keySize)
		rand.Read(fresh) // never fails
		l.before, l.key, l.renewed = l.key, fresh, time.Now()
	}
	return l.key
}

func (l *listener) keys() (now, before row.WakeKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.key, l.before
}

// loop receives until the socket is closed.
func (l *listener) loop() {
	buf := make([]byte, MaxPacket+1)
	var allowed bucket
	for {
		allowed.wait()
		n, from, err := l.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of an acknowledgement that did not arrive, or of a datagram that is too long
		}
		now, before := l.keys()
		notices, ack, err := open(buf[:n], l.token, now, before)
		if err != nil {
			l.metrics.Woke(metrics.WakeRefused)
			continue
		}
		l.metrics.Woke(metrics.WakeReceived)
		l.hear(notices)
		_ = l.conn.SetWriteDeadline(time.Now().Add(ackWait))
		_, _ = l.conn.WriteToUDPAddrPort(ack, from) // one that is lost counts as not acknowledged
	}
}

// bucket lets perSecond events pass, and up to burst of them at once.
type bucket struct {
	left float64
	at   time.Time
}

func (b *bucket) wait() {
	now := time.Now()
	b.left = min(b.left+now.Sub(b.at).Seconds()*perSecond, burst)
	b.at = now
	if b.left < 1 {
		<-time.After(time.Duration((refill - b.left) / perSecond * float64(time.Second)))
	}
	b.left--
}
