package reqbody

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/crowd"
)

// Rooms is the memory for all that requests hold: bodies and forms, what is made of them, and answers that are not
// read. Small requests have a room of their own, so that no large one delays them.
type Rooms struct {
	Small, Large *Room
	Decoded      *Room         // for what is made of many short texts of a body, such as headers
	Answers      *Room         // for tasks that are handed out or shown, with their bodies
	Reads        *Room         // what shows many rows takes a turn, so that one viewer does not take the database
	Requests     *crowd.Turns  // in bytes: all that are under way, with their headers
	Wait         time.Duration // how long a request waits for room
}

const (
	// SmallBody is the size in bytes up to which a body has its place in the room of small requests.
	SmallBody = 1 << 20
	// begun is what is read of a body of unknown length before it takes a place for the largest one.
	begun = 64 << 10

	smallBytes  = 32 << 20
	largeBytes  = 96 << 20 // a batch of the greatest size takes all of it
	answerBytes = 48 << 20
	roomWait    = 10 * time.Second

	decodedBytes = 32 << 20
	// textBytes is what is made of a text, such as an entry of a map, for each of its quotation marks. What is no more
	// than fewDecoded needs no place.
	textBytes  = 64
	fewDecoded = 16 << 10

	mostReads = 8
	// requestBytes is what a request takes besides its headers and its body, and headerBytes what a header does besides
	// its text. streamBytes are read of a body by HTTP/2 before anyone asks for it.
	requestBytes = 24 << 10
	headerBytes  = 512
	streamBytes  = 64 << 10
	// Connections is how many connections there are at most, by default.
	Connections = 10_000
	// requestsPart is the part of the connections, as a divisor, that may have requests at once. The others are idle.
	requestsPart = 2.5
)

// NewRooms returns the memory of a service with so many connections at most.
func NewRooms(connections int) *Rooms {
	requests := max(1, int64(float64(connections)/requestsPart))
	return &Rooms{
		Reads: NewRoom(mostReads, mostReads/2), Requests: crowd.NewTurns(requests * requestBytes),
		Small: NewRoom(smallBytes, smallBytes/2), Large: NewRoom(largeBytes, largeBytes),
		Decoded: NewRoom(decodedBytes, decodedBytes/2), Answers: NewRoom(answerBytes, answerBytes/2), Wait: roomWait,
	}
}

// Unread cuts off the client of an answer when that has waited for it and others need its place.
func (p *Place) Unread(w http.ResponseWriter) {
	p.Waits(func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now()) })
}

// CallerOf names who sends a request: by the token, or by the address without one.
func CallerOf(r *http.Request) string {
	if name := access.From(r.Context()).Name(); name != "" {
		return "token " + name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// Serve begins a request of a caller, and its connection is the caller's until done is called. It reports false for a
// caller that has too many under way.
func (s *Rooms) Serve(r *http.Request) (done func(), ok bool) {
	bytes, caller := int64(requestBytes), CallerOf(r)
	for name, values := range r.Header {
		bytes += int64(len(name)) + headerBytes
		for _, v := range values {
			bytes += int64(len(v)) + headerBytes/16
		}
	}
	if r.ProtoMajor > 1 && r.Body != nil && r.Body != http.NoBody {
		bytes += streamBytes
	}
	leave, ok := s.Requests.Take(caller, bytes)
	if !ok {
		return nil, false
	}
	rest := crowd.Serve(r.Context(), caller)
	return func() {
		rest()
		leave()
	}, true
}

// Hold makes the body of a request wait for its place when it is first read. The body holds the place until done is
// called: when the request is answered. A body has at most limit bytes, and weight says how many bytes are held because
// of so many bytes of it. One that has not arrived when others need its place is cut off, with [NoRoom].
func (s *Rooms) Hold(
	w http.ResponseWriter, r *http.Request, limit int64, weight func(int64) int64,
) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	b := &heldBody{ReadCloser: r.Body, rooms: s, w: w, r: r, limit: limit, weight: weight, caller: CallerOf(r)}
	r.Body = b
	return b.leave
}

// Decode waits for room for what is made of a JSON body. The texts are counted, since headers of few bytes take many
// times as much once they are read. What is made has its place until done is called. It returns [NoRoom] when there was
// none in time.
func (s *Rooms) Decode(r *http.Request, body []byte) (done func(), err error) {
	made := int64(bytes.Count(body, []byte{'"'})) * textBytes
	if made <= fewDecoded {
		return func() {}, nil
	}
	place, err := s.Decoded.Enter(r.Context(), CallerOf(r), made, s.Wait, nil)
	if err != nil {
		return nil, err
	}
	return place.Leave, nil
}

// heldBody is a body that waits for its place.
type heldBody struct {
	io.ReadCloser
	rooms  *Rooms
	w      http.ResponseWriter
	r      *http.Request
	limit  int64
	weight func(int64) int64
	caller string

	read  int64
	most  int64 // how many bytes the place is for
	place *Place
	isCut chan struct{} // closed when it was cut off
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.place == nil || b.read >= b.most {
		if err := b.enter(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.most-b.read)])
	b.read += int64(n)
	if err == nil {
		return n, nil
	}
	select {
	case <-b.isCut:
		return n, NoRoom
	default:
	}
	b.place.Waits(nil)
	b.place.Keep(b.weight(b.read))
	return n, err
}

// enter takes a place for the beginning of the body, and then for all of it. What is longer than the limit is refused
// when it is read.
func (b *heldBody) enter() error {
	room, most := b.rooms.Small, b.r.ContentLength
	switch {
	case most < 0 && b.place == nil:
		most = min(begun, b.limit)
	case most < 0 || b.place != nil || most > b.limit:
		most = b.limit
	}
	if most > SmallBody || b.place != nil {
		room = b.rooms.Large
	}
	cut := make(chan struct{})
	place, err := room.Enter(b.r.Context(), b.caller, b.weight(most), b.rooms.Wait, func() {
		close(cut)
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Now())
	})
	if err != nil {
		return err
	}
	if b.place != nil {
		b.place.Leave()
	}
	b.place, b.isCut, b.most = place, cut, most+1 // one byte more shows that a body is too long
	return nil
}

func (b *heldBody) leave() {
	if b.place != nil {
		b.place.Leave()
	}
}
