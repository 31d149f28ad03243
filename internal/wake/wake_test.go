package wake

import (
	"bytes"
	"log/slog"
	"net"
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

// await waits for an event.
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

// relay passes datagrams on between a sender and a listener, but for those that it drops.
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

// An acknowledgement may arrive after more was sent.
func TestAnAcknowledgementIsOfItsDatagramAlone(t *testing.T) {
	own, _ := parseToken(token)
	key := row.WakeKey("key")
	listener, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := newSender(own, metrics.None)
	close(s.done)
	defer s.loop() // which ends the connection
	send := func(n Notice) (ack []byte) {
		s.tell(listener.LocalAddr().(*net.UDPAddr).AddrPort(), key, []Notice{n})
		s.send(true)
		buf := make([]byte, MaxPacket)
		size, err := listener.Read(buf)
		if err == nil {
			_, ack, err = open(buf[:size], own, key)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	open := func(ack []byte) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard(ack)
		return len(s.open)
	}
	first, more := send(someNotice), someNotice
	more.To++
	second := send(more)
	if open(first) != 1 || open(second) != 0 {
		t.Error("the first acknowledgement is taken for the second one, or the second one is not taken")
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
		l := &listener{}
		first := l.current()
		time.Sleep(renewEvery - 1)
		if !bytes.Equal(l.current(), first) {
			t.Error("renewed too soon")
		}
		time.Sleep(1)
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
		began := time.Now()
		for range 10 * perSecond {
			b.wait()
		}
		if took := time.Since(began); took < 9*time.Second {
			t.Errorf("read within %v", took)
		}
	})
}

func TestWhereNothingIsSent(t *testing.T) {
	for _, address := range []string{
		"", "10.0.0.1", "10.0.0.1:0", "0.0.0.0:9", "[::]:9", "224.0.0.1:9", "169.254.1.1:9", "[fe80::1]:9",
		"[fe80::1%eth0]:9", "[ff02::1]:9", "255.255.255.255:9", "[::ffff:224.0.0.1]:9", "example.com:9",
		"127.0.0.1:9", "[::1]:9",
	} {
		if _, ok := target(address, false); ok {
			t.Errorf("%q is sent to", address)
		}
	}
	for _, address := range []string{"10.0.0.1:9", "[2001:db8::1]:9", "[::ffff:10.0.0.1]:9"} {
		if _, ok := target(address, false); !ok {
			t.Errorf("%q is not sent to", address)
		}
	}
	if _, ok := target("127.0.0.1:9", true); !ok {
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

// Heartbeats begin before a process listens. With the race detector.
func TestARowCanBeReadWhileListeningBegins(t *testing.T) {
	e := New(Config{Listen: Loopback, Log: slog.New(slog.DiscardHandler), Metrics: metrics.None})
	defer e.Close()
	var beat sync.WaitGroup
	beat.Go(func() { e.Row(token) })
	e.Listen(token, func([]Notice) {})
	beat.Wait()
}

// A process whose address is taken is still told by those of its host.
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
