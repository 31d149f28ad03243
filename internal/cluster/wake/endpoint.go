package wake

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

// Config says where a process listens, and which process it is.
type Config struct {
	Listen   string        // an address and port, or a port alone as ":7342", or [Loopback] or [Off]
	Database string        // the host of the database; "" when it is not known
	Host     string        // which host this process is on, as nodes name it
	Name     string        // of the host, for systems that name none
	Renew    time.Duration // how long a key is written into the node's row; 0 means an hour
	Metrics  metrics.Recorder
	Log      *slog.Logger
}

// Endpoint sends and receives the wake-ups of one process. It is safe for concurrent use.
type Endpoint struct {
	cfg   Config
	at    *net.UDPAddr // where it will listen
	atErr error        // why that is not known
	done  sync.WaitGroup

	mu       sync.Mutex
	listener *listener          // nil for a process that does not listen
	senders  map[string]*sender // by token
	closed   bool

	rates      rates
	broadcasts []netip.Addr
	looked     time.Time // when they were found
}

// lookEvery is how often the networks of this host are looked at. One may be added.
const lookEvery = 10 * time.Second

// mostSenders bounds the sockets. It is above the number of processes that can share a database.
const mostSenders = 1024

// New returns an endpoint. It finds out where it will listen, which may ask for the address of the database's host.
func New(cfg Config) *Endpoint {
	e := &Endpoint{cfg: cfg, senders: map[string]*sender{}}
	if cfg.Listen != Off {
		e.at, e.atErr = bindTo(cfg.Listen, cfg.Database)
	}
	return e
}

// Listen begins to receive, for the process with the token. hear is called with what others send; it must not wait.
// When the address cannot be had, it listens for processes of this host alone, and logs why.
func (e *Endpoint) Listen(token string, hear func([]Notice)) {
	own, ok := parseToken(token)
	if !ok || e.cfg.Listen == Off {
		return
	}
	l, err := (*listener)(nil), e.atErr
	if err == nil {
		l, err = newListener(e.at, own, hear, e.cfg)
	}
	if err != nil && (e.at == nil || !e.at.IP.IsLoopback()) {
		e.cfg.Log.Warn("wake-ups of other hosts are not received; choose another address (wake.listen, Config.Wake)",
			"address", e.cfg.Listen, "err", err)
	}
	if err != nil {
		l, err = newListener(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, own, hear, e.cfg)
	}
	if err != nil {
		e.cfg.Log.Warn("wake-ups are not received; tasks that other processes save may start late", "err", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		_ = l.conn.Close()
		return
	}
	e.listener = l
	e.done.Go(l.loop)
}

// Row returns what the row of the process says of its address, its key, and which processes do not acknowledge.
func (e *Endpoint) Row(token string) row.Wake {
	w := row.Wake{Token: token}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listener != nil {
		w.Address, w.Key = e.listener.conn.LocalAddr().String(), e.listener.current()
	}
	for token, s := range e.senders {
		s.mu.Lock()
		if s.unreachable {
			w.Unreachable = append(w.Unreachable, token)
		}
		s.mu.Unlock()
	}
	slices.Sort(w.Unreachable)
	return w
}

// Notify tells a process of notices, until it acknowledges. It does not wait. It does nothing for a process that does
// not listen, or has no address to send to.
func (e *Endpoint) Notify(n row.Node, notices ...Notice) {
	sameHost := n.Host == e.cfg.Host && (n.Host != "" || n.Name == e.cfg.Name)
	token, valid := parseToken(n.Token)
	if !valid || len(n.Wake.Key) != keySize {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.looked) > lookEvery {
		networks, _ := net.InterfaceAddrs() // none leave the addresses that are known
		e.broadcasts, e.looked = ofAll(networks), time.Now()
	}
	address, ok := target(n.Wake.Address, sameHost, e.broadcasts)
	if !ok || e.closed {
		return
	}
	s := e.senders[n.Token]
	if s == nil {
		if len(e.senders) == mostSenders {
			return
		}
		s = newSender(token, e.cfg.Metrics, &e.rates)
		e.senders[n.Token] = s
		e.done.Go(func() {
			for s.loop(); !e.forget(n.Token, s); {
				s.loop()
			}
		})
	}
	s.tell(address, n.Wake.Key, notices)
}

// forget reports whether the sender has ended. It goes on when it was told something after it had nothing to send.
func (e *Endpoint) forget(token string, s *sender) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending() && !e.closed {
		return false
	}
	s.finish()
	delete(e.senders, token)
	return true
}

// Close ends all sending and receiving.
func (e *Endpoint) Close() {
	e.mu.Lock()
	for _, s := range e.senders {
		if !e.closed {
			close(s.done)
		}
	}
	e.closed = true
	if e.listener != nil {
		_ = e.listener.conn.Close()
	}
	e.mu.Unlock()
	e.done.Wait()
}
