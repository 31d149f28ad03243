package wake

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "0123456789abcdef"

var someNotice = Notice{Tag: "order.close", From: 1_700_000_000_000_000, To: 1_700_000_000_500_000, Share: 1, Of: 3}

// events counts wake-ups by event, and tells of each.
type events struct {
	metrics.Recorder
	mu   sync.Mutex
	seen map[string]int
	next chan string
}

func newEvents() *events {
	return &events{Recorder: metrics.None, seen: map[string]int{}, next: make(chan string, 10_000)}
}

func (e *events) Woke(event string) {
	e.mu.Lock()
	e.seen[event]++
	e.mu.Unlock()
	e.next <- event
}

func (e *events) await(event string) {
	for seen := range e.next {
		if seen == event {
			return
		}
	}
}

func (e *events) count(event string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[event]
}

// endpoint listens on loopback, and closes at the end of the test.
func endpoint(t *testing.T, listen string) (*Endpoint, *events, chan []Notice) {
	seen, heard := newEvents(), make(chan []Notice, 100)
	e := New(Config{Listen: listen, Host: "here", Log: slog.New(slog.DiscardHandler), Metrics: seen})
	e.Listen(token, func(notices []Notice) { heard <- notices })
	t.Cleanup(e.Close)
	return e, seen, heard
}

func nodeOf(e *Endpoint) row.Node { return row.Node{Token: token, Host: "here", Wake: e.Row(token)} }

func TestNewsArrive(t *testing.T) {
	listener, _, heard := endpoint(t, Loopback)
	saver, _, _ := endpoint(t, Off)
	paused := Notice{Tag: "mail", From: someNotice.From, To: someNotice.To, State: true}
	saver.Notify(nodeOf(listener), someNotice, paused)
	got := <-heard
	if len(got) != 2 || !slices.Contains(got, someNotice) || !slices.Contains(got, paused) {
		t.Errorf("heard %+v", got)
	}
}

// A bulk save of many tags is more than one datagram holds.
func TestManyNewsArriveInSeveralDatagrams(t *testing.T) {
	listener, _, heard := endpoint(t, Loopback)
	saver, _, _ := endpoint(t, Off)
	var all []Notice
	for i := range 40 {
		n := someNotice
		n.Tag, n.Share, n.Of = strings.Repeat("x", 100+i%28), i, 64
		all = append(all, n)
	}
	saver.Notify(nodeOf(listener), all...)
	got := map[Notice]bool{}
	for len(got) < len(all) {
		for _, n := range <-heard {
			got[n] = true
		}
	}
}

// relay passes datagrams on between a sender and a listener, except for those that it drops.
func relay(t *testing.T, to string, drop func(n int) bool) string {
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	var pumps sync.WaitGroup
	t.Cleanup(func() { _, _ = in.Close(), out.Close(); pumps.Wait() })
	peer := make(chan net.Addr, 1)
	pumps.Go(func() {
		buf := make([]byte, 2000)
		for n := 0; ; n++ {
			size, from, err := in.ReadFrom(buf)
			if err != nil {
				return
			}
			if n == 0 {
				peer <- from
			}
			if !drop(n) {
				_, _ = out.Write(buf[:size])
			}
		}
	})
	pumps.Go(func() {
		buf := make([]byte, 2000)
		var from net.Addr
		for {
			size, err := out.Read(buf)
			if err != nil {
				return
			}
			if from == nil {
				from = <-peer
			}
			_, _ = in.WriteTo(buf[:size], from)
		}
	})
	return in.LocalAddr().String()
}

func TestALostDatagramIsSentAgain(t *testing.T) {
	listener, _, heard := endpoint(t, Loopback)
	saver, _, _ := endpoint(t, Off)
	n := nodeOf(listener)
	n.Wake.Address = relay(t, n.Wake.Address, func(n int) bool { return n < 2 })
	saver.Notify(n, someNotice)
	if got := <-heard; len(got) != 1 || got[0] != someNotice {
		t.Errorf("heard %+v", got)
	}
}

func TestANodeThatDoesNotAcknowledgeIsUnreachableUntilItDoes(t *testing.T) {
	listener, _, heard := endpoint(t, Loopback)
	saver, seen, _ := endpoint(t, Off)
	deaf := nodeOf(listener)
	deaf.Wake.Key = bytes.Repeat([]byte{7}, keySize)
	saver.Notify(deaf, someNotice)
	seen.await(metrics.WakeLost)
	if w := saver.Row("fedcba9876543210"); len(w.Unreachable) != 1 || w.Unreachable[0] != token {
		t.Errorf("unreachable: %q", w.Unreachable)
	}
	saver.Notify(nodeOf(listener), someNotice)
	<-heard
	for len(saver.Row("fedcba9876543210").Unreachable) > 0 {
		time.Sleep(time.Millisecond) // the acknowledgement is under way
	}
}

func TestForgedDatagramsAreRefused(t *testing.T) {
	own, _ := parseToken(token)
	key := row.WakeKey(bytes.Repeat([]byte{1}, keySize))
	good, _ := packet(own, 7, []Notice{someNotice}, key)
	other, _ := packet([tokenSize]byte{9}, 7, []Notice{someNotice}, key)
	ack := sign(header{kindAck, own, 7}.append(nil), key)
	empty := sign(header{kindNotice, own, 7}.append(nil), key)
	noTag := sign(Notice{}.append(header{kindNotice, own, 7}.append(nil)), key)
	forged := map[string][]byte{
		"another process": other, "an acknowledgement": ack, "no notices": empty, "no tag": noTag, "nothing": nil,
		"cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 0),
	}
	for i := range good {
		changed := bytes.Clone(good)
		changed[i] ^= 1
		if notices, _, err := open(changed, own, key, nil); err == nil {
			t.Errorf("byte %d changed: %+v", i, notices)
		}
	}
	for name, b := range forged {
		if notices, _, err := open(b, own, key, nil); err == nil {
			t.Errorf("%s: %+v", name, notices)
		}
	}
	notices, answer, err := open(good, own, nil, key)
	if err != nil || len(notices) != 1 || len(answer) > len(good) {
		t.Fatalf("%+v, answer of %d bytes to %d, %v", notices, len(answer), len(good), err)
	}
	if id, ok := acknowledged(answer, own, key); !ok || id != 7 {
		t.Errorf("acknowledged %d, %v", id, ok)
	}
	if _, ok := acknowledged(answer, own, row.WakeKey("another")); ok {
		t.Error("an acknowledgement with another key was taken")
	}
}

func FuzzOpen(f *testing.F) {
	own, _ := parseToken(token)
	key := row.WakeKey("key")
	good, _ := packet(own, 7, []Notice{someNotice, {Tag: "a", State: true}}, key)
	f.Add(good, false)
	f.Add(good[:len(good)-macSize], true)
	f.Fuzz(func(t *testing.T, b []byte, signed bool) {
		if signed {
			b = sign(b, key)
		}
		notices, ack, err := open(b, own, key, nil)
		if err == nil && (len(notices) == 0 || len(ack) > len(b) || !signed && !bytes.Equal(b, good)) {
			t.Errorf("%d notices, answer of %d bytes to %d", len(notices), len(ack), len(b))
		}
		acknowledged(b, own, key)
	})
}

func TestAKeyIsTakenForAnHourAfterItsRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{renew: renewEvery}
		first := l.current()
		time.Sleep(renewEvery - 1)
		if !bytes.Equal(l.current(), first) {
			t.Error("renewed too soon")
		}
		time.Sleep(time.Nanosecond)
		second := l.current()
		if now, before := l.keys(); bytes.Equal(second, first) || !bytes.Equal(now, second) ||
			!bytes.Equal(before, first) {
			t.Error("the key before the renewal is not taken any more, or the key was not renewed")
		}
		time.Sleep(renewEvery)
		l.current()
		if now, before := l.keys(); bytes.Equal(now, first) || bytes.Equal(before, first) {
			t.Error("the first key is still taken")
		}
	})
}

func TestAFloodIsReadAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bucket
		began, sleeps := time.Now(), 0
		for range 10 * perSecond {
			before := time.Now()
			b.wait()
			if time.Since(before) > 0 {
				sleeps++
			}
		}
		if took := time.Since(began); took < 9*time.Second || took > 10*time.Second || sleeps > 10*perSecond/refill {
			t.Errorf("read within %v, with %d sleeps", took, sleeps)
		}
	})
}

func TestWhereNothingIsSent(t *testing.T) {
	network := func(text string) *net.IPNet {
		ip, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		n.IP = ip
		return n
	}
	broadcasts := ofAll([]net.Addr{
		network("10.0.3.7/22"), network("192.168.1.9/24"), network("10.9.9.8/31"), network("2001:db8::7/64"),
	})
	for _, address := range []string{
		"", "10.0.0.1", "10.0.0.1:0", "0.0.0.0:9", "[::]:9", "224.0.0.1:9", "169.254.1.1:9", "[fe80::1]:9",
		"[fe80::1%eth0]:9", "[ff02::1]:9", "255.255.255.255:9", "[::ffff:224.0.0.1]:9", "example.com:9",
		"127.0.0.1:9", "[::1]:9", "10.0.3.255:9", "10.0.0.0:9", "[::ffff:10.0.3.255]:9", "192.168.1.255:9",
		"0.1.2.3:9", "240.0.0.1:9",
	} {
		if _, ok := target(address, false, broadcasts); ok {
			t.Errorf("%q is sent to", address)
		}
	}
	for _, address := range []string{
		"10.0.0.1:9", "[2001:db8::1]:9", "[::ffff:10.0.0.1]:9", "10.0.2.255:9", "10.0.4.0:9", "10.9.9.9:9",
	} {
		if _, ok := target(address, false, broadcasts); !ok {
			t.Errorf("%q is not sent to", address)
		}
	}
	if _, ok := target("127.0.0.1:9", true, broadcasts); !ok {
		t.Error("a process of this host is not told")
	}
}

func TestWhereAProcessListens(t *testing.T) {
	for _, c := range []struct{ listen, database, want string }{
		{":7342", "127.0.0.1", "127.0.0.1:7342"},
		{"0.0.0.0:7342", "127.0.0.1", "127.0.0.1:7342"},
		{"10.1.2.3:5", "127.0.0.1", "10.1.2.3:5"},
		{"[::1]:5", "", "[::1]:5"},
	} {
		if at, err := bindTo(c.listen, c.database); err != nil || at.String() != c.want {
			t.Errorf("%s with the database at %s: %v, %v, want %s", c.listen, c.database, at, err, c.want)
		}
	}
	for _, wrong := range []string{"7342", "10.0.0.1", "10.0.0.1:99999", "on"} {
		if CheckListen(wrong) == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// A process whose address is taken is still told by the processes of its host.
func TestATakenAddressLeavesLoopback(t *testing.T) {
	first, _, _ := endpoint(t, Loopback)
	second, _, _ := endpoint(t, first.Row(token).Address)
	if w := second.Row(token); w.Address == "" || w.Address == first.Row(token).Address {
		t.Errorf("it listens on %q", w.Address)
	}
}

func TestKeysAreNotShown(t *testing.T) {
	var out bytes.Buffer
	w := row.Wake{Token: token, Key: row.WakeKey("secret-key")}
	slog.New(slog.NewTextHandler(&out, nil)).Info("node", "wake", w, "key", w.Key)
	if strings.Contains(out.String(), "secret") || strings.Contains(out.String(), "115") {
		t.Errorf("the log shows %s", out.String())
	}
}

// tested is a sender whose datagrams the test reads itself.
func tested(t *testing.T) (s *sender, seen *events, to netip.AddrPort, next func() ([]Notice, []byte)) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	own, _ := parseToken(token)
	seen = newEvents()
	s = newSender(own, seen, &rates{})
	t.Cleanup(func() {
		s.mu.Lock()
		s.disconnect()
		s.mu.Unlock()
		_ = conn.Close()
	})
	return s, seen, conn.LocalAddr().(*net.UDPAddr).AddrPort(), func() ([]Notice, []byte) {
		buf := make([]byte, MaxPacket)
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, _, err := conn.ReadFromUDP(buf)
		if err != nil {
			t.Fatal(err)
		}
		notices, ack, err := open(buf[:n], own, senderKey)
		if err != nil {
			t.Fatal(err)
		}
		return notices, ack
	}
}

var senderKey = row.WakeKey(bytes.Repeat([]byte{1}, keySize))

func TestAnAcknowledgementCountsForItsDatagramAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no notice waits so long that it is sent again
		s, seen, to, next := tested(t)
		// A write may fail on a slow machine, because its deadline passes.
		again := func(send func()) {
			for before := seen.count(metrics.WakeSent); seen.count(metrics.WakeSent) == before; {
				send()
			}
		}
		tell := func(n Notice) {
			again(func() {
				s.mu.Lock()
				maps.DeleteFunc(s.flying, func(_ uint64, f *flight) bool { return slices.Contains(f.notices, n) })
				s.mu.Unlock()
				s.tell(to, senderKey, []Notice{n})
				s.send(true)
			})
		}
		tell(someNotice)
		_, ack := next()
		later := someNotice
		later.From, later.To = later.From+1_000_000, later.To+1_000_000
		tell(later)
		if got, _ := next(); !slices.Equal(got, []Notice{later}) { // otherwise spans would grow while a tag is busy
			t.Errorf("the second datagram has %+v", got)
		}
		s.mu.Lock()
		s.heard(ack)
		s.mu.Unlock()
		again(func() {
			s.mu.Lock()
			for _, f := range s.flying {
				f.at = f.at.Add(-giveUpAfter / 2)
			}
			s.mu.Unlock()
			s.send(false)
		})
		if got, _ := next(); !slices.Equal(got, []Notice{later}) {
			t.Errorf("after the acknowledgement of the first datagram the second was sent again with %+v", got)
		}
	})
}

// 500 datagrams a second are the most that a process sends to another one.
func TestASenderSendsOneDatagramAtATime(t *testing.T) {
	s, seen, to, next := tested(t)
	var many []Notice
	for i := range 1000 {
		n := someNotice
		n.Share, n.Of = i%512, 512+i/512
		many = append(many, n)
	}
	many = append(many, Notice{Tag: strings.Repeat("x", 2*MaxPacket)}) // fits no datagram
	s.tell(to, senderKey, many)
	for got := 0; got < 1000; {
		before := seen.count(metrics.WakeSent)
		wait, _ := s.send(false)
		if len(s.open) > 0 && wait > pause {
			t.Fatalf("the rest waits %v", wait)
		}
		switch sent := seen.count(metrics.WakeSent) - before; sent {
		case 0: // the machine was so slow that the write's deadline passed: the notices are sent again
			continue
		case 1:
		default:
			t.Fatalf("%d datagrams at once", sent)
		}
		notices, ack := next()
		got += len(notices)
		s.mu.Lock()
		s.heard(ack)
		s.mu.Unlock()
	}
}

func TestASenderThatEndsWhileItIsToldGoesOn(t *testing.T) {
	e, _, _ := endpoint(t, Off)
	s, _, to, _ := tested(t)
	e.senders[token] = s
	s.tell(to, senderKey, []Notice{someNotice})
	if e.forget(token, s) {
		t.Error("it forgets what it was told")
	}
	s.mu.Lock()
	clear(s.open)
	s.mu.Unlock()
	if !e.forget(token, s) || len(e.senders) != 0 {
		t.Error("it does not end")
	}
}

// The heartbeat asks for the row before the process listens, and a stop may come at any time.
func TestAnEndpointIsUsedWhileItBeginsAndEnds(t *testing.T) {
	listener, _, _ := endpoint(t, Loopback)
	for range 20 {
		e := New(Config{Host: "here", Log: slog.New(slog.DiscardHandler), Metrics: metrics.None, Listen: Loopback})
		var users sync.WaitGroup
		users.Go(func() { e.Listen(token, func([]Notice) {}) })
		users.Go(func() { e.Row(token) })
		users.Go(func() { e.Notify(nodeOf(listener), someNotice) })
		users.Go(e.Close)
		users.Go(e.Close)
		users.Wait()
	}
}

func TestHostileRowsCostLittle(t *testing.T) {
	listener, _, _ := endpoint(t, Loopback)
	saver, _, _ := endpoint(t, Off)
	n := nodeOf(listener)
	n.Wake.Key = bytes.Repeat([]byte{1}, 1<<20) // each datagram would hash it
	saver.Notify(n, someNotice)
	if len(saver.senders) > 0 {
		t.Errorf("a key of %d bytes is used", len(n.Wake.Key))
	}
	networks, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range ofAll(networks) {
		at := row.Wake{Address: netip.AddrPortFrom(all, 9).String(), Key: senderKey}
		if saver.Notify(row.Node{Token: token, Host: "here", Wake: at}, someNotice); len(saver.senders) > 0 {
			t.Fatalf("all hosts of a network are told, at %s", at.Address)
		}
	}
	for i := range 2 * mostSenders {
		n.Token, n.Wake.Key = fmt.Sprintf("%016x", i), senderKey
		saver.Notify(n, someNotice)
	}
	if len(saver.senders) != mostSenders {
		t.Errorf("%d sockets", len(saver.senders))
	}
	long := row.Wake{Token: token, Unreachable: make([]string, 1<<20)}.Column()
	if w := row.ReadWake(long, token); w.Token != "" {
		t.Errorf("a column of %d bytes is kept", len(long))
	}
}

// False rows name the ports of one host, and the process that does listen there.
func TestFalseRowsDoNotMultiplyTheDatagramsToAHost(t *testing.T) {
	victim, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	listener, _, heard := endpoint(t, Loopback)
	saver, seen, _ := endpoint(t, Off)
	began := time.Now()
	for i := range 200 {
		saver.Notify(row.Node{
			Token: fmt.Sprintf("%016x", i), Host: "here",
			Wake: row.Wake{Address: victim.LocalAddr().String(), Key: senderKey},
		}, someNotice)
	}
	saver.Notify(nodeOf(listener), someNotice)
	if got := <-heard; len(got) != 1 || got[0] != someNotice {
		t.Errorf("the process at the same host heard %+v", got)
	}
	for range 3 { // each false process is sent several
		seen.await(metrics.WakeLost)
	}
	saver.Close()
	sent := seen.count(metrics.WakeSent)
	if most := int(time.Since(began)/pause) + 1; sent > most || sent < 100 {
		t.Errorf("%d datagrams were sent to the host, at most %d may be", sent, most)
	}
}

// What is not signed, what is replayed, and what is signed but makes no sense costs a bounded rate of calls and no
// memory.
func TestAListenerUnderAFloodKeepsToItsBounds(t *testing.T) {
	seen := newEvents()
	seen.next = make(chan string, 1<<20)
	own, _ := parseToken(token)
	heard := 0 // by the loop alone, and read after its end
	hear := func([]Notice) { heard++ }
	l, err := newListener(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, own, hear, Config{Metrics: seen})
	if err != nil {
		t.Fatal(err)
	}
	key := l.current()
	var done sync.WaitGroup
	done.Go(l.loop)
	conn, err := net.Dial("udp", l.conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	good, _ := packet(own, 7, []Notice{someNotice}, key)
	random := mathrand.NewChaCha8([32]byte{1})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	for i := 0; time.Since(began) < time.Second; i++ {
		b := bytes.Clone(good)
		switch i % 3 {
		case 0: // replayed
		case 1:
			b = make([]byte, random.Uint64()%1400)
			_, _ = random.Read(b)
		case 2:
			_, _ = random.Read(b[headerSize:])
			b = sign(b[:len(b)-macSize], key)
		}
		_, _ = conn.Write(b)
	}
	_ = l.conn.Close()
	done.Wait()
	grown := int64(heap()) - int64(before)
	read := float64(seen.count(metrics.WakeReceived) + seen.count(metrics.WakeRefused))
	if most := time.Since(began).Seconds()*perSecond + burst; read > most || heard == 0 || grown > 1<<20 {
		t.Errorf("%v datagrams were read, at most %v may be; %d were heard; memory grew by %d bytes",
			read, most, heard, grown)
	}
}
