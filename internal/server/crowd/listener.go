package crowd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// strangersPart is the part of all connections, as a divisor, that strangers may take from callers, and keep. A
	// connection is a stranger's while no request of a caller is served.
	strangersPart = 4
	// atOnce is the part of all connections, as a divisor, that is closed together when there are too many, so that
	// they are seldom looked through.
	atOnce = 200
	// mostHeads is how many bytes of headers may be under way on all connections together. Headers in lines of five
	// bytes take twenty times as much memory once they are read.
	mostHeads = 1 << 20
	// readsPart is how many connections read headers at once, for each processor. It takes 1 ms to read 4 KiB of short
	// ones, and who comes behind thousands of others would wait for all of them.
	readsPart = 2
	// ipv6Subnet is how many bits the addresses of one customer have in common.
	ipv6Subnet = 64
)

// Listener bounds how many connections are open, and what their headers take. It accepts all. When there are too many
// it closes some: the oldest ones of who has most. A connection is its address's, and while a request of a caller is
// served it is that caller's. Callers and strangers keep a part each, whatever the others open.
type Listener struct {
	net.Listener
	headers int64 // bytes that the headers of a request have at most

	mu      sync.Mutex
	most    int
	heads   int64 // bytes of headers under way
	open    map[*conn]struct{}
	turns   int                // how many more may read headers
	waiting map[string][]*conn // for their turn to do so, the last to come last
}

// conn is an open connection.
type conn struct {
	net.Conn
	of   *Listener
	from string

	// What follows is guarded by the lock of the listener.
	caller  string // whose requests are served
	serving int    // how many of them; HTTP/2 has several at once
	since   time.Time
	head    int64 // bytes that were read and are not a caller's: of headers, as a rule
	idle    bool  // no request is served
	reads   bool  // it has a turn
	turn    chan struct{}
}

// Listen bounds the connections of l to so many, and the headers of a request to so many bytes.
func Listen(l net.Listener, most int, headers int64) *Listener {
	return &Listener{
		Listener: l, headers: headers, most: most, open: map[*conn]struct{}{},
		turns: readsPart * runtime.GOMAXPROCS(0), waiting: map[string][]*conn{},
	}
}

// Accept waits for the next connection. Where the system allows fewer than there may be, it keeps to those.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.fewer()
		}
		return nil, err
	}
	c := &conn{Conn: accepted, of: l, from: subnet(accepted.RemoteAddr()), since: time.Now(), idle: true}
	l.mu.Lock()
	l.open[c] = struct{}{}
	var over []*conn
	if len(l.open) > l.most {
		over = l.mostOf(1 + l.most/atOnce)
	}
	l.mu.Unlock()
	cut(over)
	return c, nil
}

// fewer leaves files for what else the process does, such as its connections to the database.
func (l *Listener) fewer() {
	l.mu.Lock()
	l.most = max(1, len(l.open)*15/16)
	over := l.mostOf(len(l.open) - l.most)
	l.mu.Unlock()
	cut(over)
}

// cut closes connections that are forgotten already.
func cut(over []*conn) {
	for _, c := range over {
		_ = c.Conn.Close()
	}
}

// mostOf forgets the n connections that are closed first, of strangers when they have more than their part. l.mu is
// held.
func (l *Listener) mostOf(n int) []*conn {
	var strangers, callers []*conn
	for c := range l.open {
		if c.serving == 0 {
			strangers = append(strangers, c)
		} else {
			callers = append(callers, c)
		}
	}
	if len(strangers) > l.most/strangersPart || len(callers) == 0 {
		callers = strangers
	}
	over := heaviest(callers, func(*conn) int64 { return 1 })
	over = over[:min(n, len(over))]
	for _, c := range over {
		l.forget(c)
	}
	return over
}

// forget takes out a connection that is closed. l.mu is held.
func (l *Listener) forget(c *conn) {
	c.rest()
	delete(l.open, c)
	c.leaveLine()
	c.endTurn()
}

// heaviest returns the connections in the order in which they are closed, as if they were taken one by one: the oldest
// of who has most by weight.
func heaviest(all []*conn, weight func(*conn) int64) []*conn {
	slices.SortFunc(all, func(a, b *conn) int { return b.since.Compare(a.since) })
	has, upTo := map[string]int64{}, make(map[*conn]int64, len(all))
	for _, c := range all {
		has[c.who()] += weight(c)
		upTo[c] = has[c.who()]
	}
	slices.SortFunc(all, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(upTo[b], upTo[a]), a.since.Compare(b.since))
	})
	return all
}

func (c *conn) who() string {
	if c.serving > 0 {
		return "caller " + c.caller
	}
	return c.from
}

// Read counts what a connection without a caller sends, and waits for its turn to read headers. When these take too
// much on all connections, it closes the oldest ones that have begun a header, of who has sent most.
func (c *conn) Read(p []byte) (int, error) {
	c.of.mu.Lock()
	c.endTurn()
	c.of.mu.Unlock()
	n, err := c.Conn.Read(p)
	if n > 0 {
		if over := c.count(int64(n)); over != nil {
			cut(over)
		}
		<-c.turn
	}
	return n, err
}

// count counts bytes that were read, and asks for a turn. It returns what is to be closed.
func (c *conn) count(n int64) (over []*conn) {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	c.turn = make(chan struct{})
	if _, open := l.open[c]; !open || c.serving > 0 {
		close(c.turn)
		return nil
	}
	grown := min(n, l.headers-c.head)
	c.head += grown
	if l.heads += grown; l.heads > mostHeads {
		over = l.begun(mostHeads / 2)
	}
	switch _, open := l.open[c]; {
	case !c.idle || !open:
		close(c.turn)
	case l.turns > 0:
		l.turns--
		c.reads = true
		close(c.turn)
	default:
		l.waiting[c.from] = append(l.waiting[c.from], c)
	}
	return over
}

// endTurn hands the turn on: to the address of which fewest wait, of these to who has sent least, so that a short
// request passes long headers, and of these to the last to come. Those before it may have given up. l.mu is held.
func (c *conn) endTurn() {
	if !c.reads {
		return
	}
	c.reads = false
	l := c.of
	from, fewest := "", 0
	for address, waiting := range l.waiting {
		if fewest == 0 || len(waiting) < fewest {
			from, fewest = address, len(waiting)
		}
	}
	if fewest == 0 {
		l.turns++
		return
	}
	next := l.waiting[from][fewest-1]
	for _, c := range slices.Backward(l.waiting[from]) {
		if c.head < next.head {
			next = c
		}
	}
	next.reads = true
	next.leaveLine()
}

// leaveLine lets a connection go on that waits for its turn. l.mu is held.
func (c *conn) leaveLine() {
	l := c.of
	if i := slices.Index(l.waiting[c.from], c); i >= 0 {
		if l.waiting[c.from] = slices.Delete(l.waiting[c.from], i, i+1); len(l.waiting[c.from]) == 0 {
			delete(l.waiting, c.from)
		}
		close(c.turn)
	}
}

// begun forgets the connections that are closed to leave so many bytes of headers. l.mu is held.
func (l *Listener) begun(leave int64) (over []*conn) {
	var begun []*conn
	for c := range l.open {
		if c.head > 0 && c.serving == 0 {
			begun = append(begun, c)
		}
	}
	for _, c := range heaviest(begun, func(c *conn) int64 { return c.head }) {
		if l.heads <= leave {
			break
		}
		l.forget(c)
		over = append(over, c)
	}
	return over
}

// rest begins the wait for a request. l.mu is held.
func (c *conn) rest() {
	c.of.heads -= c.head
	c.head, c.since = 0, time.Now()
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	if _, open := c.of.open[c]; open { // and not cut
		c.of.forget(c)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// Context is the ConnContext of an [http.Server] on a Listener.
func Context(ctx context.Context, open net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, bare(open))
}

// State is the ConnState of an [http.Server] on a Listener.
func State(open net.Conn, state http.ConnState) {
	c, ok := bare(open).(*conn)
	if !ok {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch state {
	case http.StateActive:
		c.idle = false
		c.endTurn()
	case http.StateIdle:
		c.idle = true
		c.rest()
	}
}

// bare returns the connection below TLS.
func bare(open net.Conn) net.Conn {
	if secured, ok := open.(*tls.Conn); ok {
		return secured.NetConn()
	}
	return open
}

// Serve makes the connection of a request the caller's until done is called.
func Serve(ctx context.Context, caller string) (done func()) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return func() {}
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	c.rest()
	c.caller = caller
	c.serving++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.serving--
		c.since = time.Now()
	}
}

func subnet(address net.Addr) string {
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	ip := from.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.WithZone("").Prefix(ipv6Subnet) // it has as many bits
	return network.String()
}
