package role

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// keyLife is short, so that what the relay replays is signed with the key of now, the one before, or an older one.
const keyLife = 30 * time.Second

// waker is the endpoint of a process for wake-ups, behind a bad network: what others send to it, and its
// acknowledgements, pass a relay.
type waker struct {
	*wake.Endpoint
	log   *slog.Logger
	seed  uint64
	seen  *events
	relay atomic.Pointer[relay] // nil for a process that does not listen
}

func newWaker(o Order, log *slog.Logger) (*waker, error) {
	target, err := sqlstore.ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	seen := &events{Recorder: metrics.None, counts: map[string]int{}}
	return &waker{log: log, seed: o.Seed, seen: seen, Endpoint: wake.New(wake.Config{
		Listen: ":0", Database: target.Host(), Host: cluster.NewProcess().Host, Name: nodeName, Metrics: seen, Log: log,
		Renew: keyLife,
	})}, nil
}

// Listen lets the relay stand before the endpoint.
func (w *waker) Listen(token string, hear func([]wake.Notice)) {
	w.Endpoint.Listen(token, hear)
	r, err := newRelay(w.Endpoint.Row(token).Address, w.seed, w.seen)
	if err != nil {
		w.log.Warn("wake-ups arrive without a relay", "err", err)
		return
	}
	w.relay.Store(r)
}

// Row names the relay's address.
func (w *waker) Row(token string) row.Wake {
	says := w.Endpoint.Row(token)
	if r := w.relay.Load(); r != nil {
		says.Address = r.in.LocalAddr().String()
	}
	return says
}

func (w *waker) Close() {
	w.Endpoint.Close()
	if r := w.relay.Load(); r != nil {
		r.close()
	}
	w.log.Info("wake-ups", "counts", w.seen.counts)
}

// events counts what became of wake-ups.
type events struct {
	metrics.Recorder
	mu     sync.Mutex
	counts map[string]int
}

func (e *events) Woke(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[event]++
}

// relay passes datagrams on, both ways, as the seed says: badly.
type relay struct {
	in      *net.UDPConn                         // what others send to
	out     *net.UDPConn                         // connected to the endpoint
	senders [4096]atomic.Pointer[netip.AddrPort] // of the last datagrams
	seen    *events
	pumps   sync.WaitGroup

	mu   sync.Mutex
	rand *rand.Rand
}

func newRelay(to string, seed uint64, seen *events) (*relay, error) {
	endpoint, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		return nil, err
	}
	r := &relay{seen: seen, rand: rand.New(rand.NewPCG(seed, 2))}
	if r.in, err = net.ListenUDP("udp", &net.UDPAddr{IP: endpoint.IP}); err != nil {
		return nil, err
	}
	if r.out, err = net.DialUDP("udp", nil, endpoint); err != nil {
		return nil, errors.Join(err, r.in.Close())
	}
	r.pumps.Go(func() {
		pump(r.in, func(b []byte, from netip.AddrPort) {
			r.sender(b).Store(&from)
			r.carry(b, func(b []byte) { _, _ = r.out.Write(b) })
		})
	})
	r.pumps.Go(func() {
		pump(r.out, func(b []byte, _ netip.AddrPort) {
			if to := r.sender(b).Load(); to != nil {
				r.carry(b, func(b []byte) { _, _ = r.in.WriteToUDPAddrPort(b, *to) })
			}
		})
	})
	return r, nil
}

func (r *relay) close() {
	_, _ = r.in.Close(), r.out.Close()
	r.pumps.Wait()
}

// pump hands on what arrives until the socket is closed.
func pump(conn *net.UDPConn, carry func([]byte, netip.AddrPort)) {
	buf := make([]byte, 2*wake.MaxPacket)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n > 0 {
			carry(bytes.Clone(buf[:n]), from)
		}
	}
}

// sender is where a datagram came from, by its id, which the acknowledgement repeats.
func (r *relay) sender(b []byte) *atomic.Pointer[netip.AddrPort] {
	const at, end = 13, 21 // behind magic, kind and token
	var id uint64
	if len(b) >= end {
		id = binary.BigEndian.Uint64(b[at:end])
	}
	return &r.senders[id%uint64(len(r.senders))]
}

// carry decides what becomes of a datagram.
func (r *relay) carry(b []byte, write func([]byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := func(event string, b []byte, least, most time.Duration) {
		r.seen.Woke("relay: " + event)
		time.AfterFunc(least+time.Duration(r.rand.Int64N(int64(most-least))), func() { write(b) })
	}
	switch n := r.rand.IntN(100); {
	case n < 20:
		r.seen.Woke("relay: dropped")
		return
	case n < 30:
		after("doubled", b, 0, 20*time.Millisecond)
	case n < 35:
		after("late", b, 0, 3*time.Second)
		return
	case n < 40:
		after("replayed", b, keyLife/2, 4*keyLife)
	case n < 45: // with a wrong code
		forged := bytes.Clone(b)
		forged[len(forged)-1] ^= 1
		after("forged", forged, 0, time.Second)
	case n < 50:
		garbage := make([]byte, 1+r.rand.IntN(wake.MaxPacket))
		for i := range garbage {
			garbage[i] = byte(r.rand.Uint32())
		}
		after("garbage", garbage, 0, time.Second)
	}
	write(b)
}
