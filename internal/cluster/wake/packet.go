package wake

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// A datagram is a header, notices, and the beginning of the HMAC-SHA256 of both:
//
//	magic    4  "dtw1"
//	kind     1  1 notices, 2 acknowledgement
//	token    8  of the process that listens
//	id       8  drawn by the sender; the acknowledgement repeats it
//	notices     each: flags 1, share 2, of 2, from 8, span 4, length of the tag 1, tag
//	mac     16
//
// Numbers are big-endian. Times are microseconds since 1970, spans microseconds.
const (
	magic = "dtw1"

	kindNotice byte = 1
	kindAck    byte = 2

	tokenSize  = 8
	headerSize = len(magic) + 1 + tokenSize + 8
	macSize    = 16
	noticeSize = 18 // without the tag

	// MaxPacket is the size of the longest datagram. It fits the smallest MTU of IPv6 with room for tunnels.
	MaxPacket = 1200

	flagState byte = 1
)

// errPacket is returned when a datagram is no wake-up, not for this process, damaged, or not signed with its key. The
// sender learns nothing of it.
var errPacket = errors.New("not an authentic wake-up")

type header struct {
	kind  byte
	token [tokenSize]byte
	id    uint64
}

// parseToken reads the token of a process as it stands in its row.
func parseToken(s string) (token [tokenSize]byte, ok bool) {
	n, err := hex.Decode(token[:], []byte(s)[:min(len(s), 2*tokenSize)])
	return token, err == nil && n == tokenSize && len(s) == 2*tokenSize
}

func (h header) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, h.kind)
	b = append(b, h.token[:]...)
	return binary.BigEndian.AppendUint64(b, h.id)
}

func readHeader(b []byte) (h header, rest []byte, ok bool) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return h, nil, false
	}
	b = b[len(magic):]
	h.kind = b[0]
	copy(h.token[:], b[1:])
	h.id = binary.BigEndian.Uint64(b[1+tokenSize:])
	return h, b[1+tokenSize+8:], true
}

func (n Notice) size() int { return noticeSize + len(n.Tag) }

func (n Notice) append(b []byte) []byte {
	var flags byte
	if n.State {
		flags = flagState
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(n.Share))
	b = binary.BigEndian.AppendUint16(b, uint16(n.Of))
	b = binary.BigEndian.AppendUint64(b, uint64(n.From))
	span := min(max(n.To-n.From, 0), math.MaxUint32)
	b = binary.BigEndian.AppendUint32(b, uint32(span))
	b = append(b, byte(len(n.Tag)))
	return append(b, n.Tag...)
}

func readNotice(b []byte) (n Notice, rest []byte, ok bool) {
	if len(b) < noticeSize || len(b) < noticeSize+int(b[noticeSize-1]) {
		return n, nil, false
	}
	size := noticeSize + int(b[noticeSize-1])
	n = Notice{
		State: b[0]&flagState != 0,
		Share: int(binary.BigEndian.Uint16(b[1:])),
		Of:    int(binary.BigEndian.Uint16(b[3:])),
		From:  row.Time(binary.BigEndian.Uint64(b[5:])),
		Tag:   string(b[noticeSize:size]),
	}
	n.From = min(max(n.From, row.MinTime), row.MaxTime)
	n.To = min(n.From+row.Time(binary.BigEndian.Uint32(b[13:])), row.MaxTime)
	return n, b[size:], delaytask.ValidTag(n.Tag)
}

// sign appends the code of b.
func sign(b []byte, key row.WakeKey) []byte {
	return append(b, mac(b, key)...)
}

func mac(b []byte, key row.WakeKey) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)[:macSize]
}

// authentic returns the datagram without its code, and the key that it is signed with.
func authentic(b []byte, keys ...row.WakeKey) (signed []byte, key row.WakeKey, ok bool) {
	if len(b) < headerSize+macSize {
		return nil, nil, false
	}
	signed, code := b[:len(b)-macSize], b[len(b)-macSize:]
	for _, key := range keys {
		if len(key) > 0 && hmac.Equal(code, mac(signed, key)) {
			return signed, key, true
		}
	}
	return nil, nil, false
}

// packet makes a datagram of as many notices as fit, and returns how many do.
func packet(token [tokenSize]byte, id uint64, notices []Notice, key row.WakeKey) (b []byte, taken int) {
	b = header{kindNotice, token, id}.append(make([]byte, 0, MaxPacket))
	for _, n := range notices {
		if len(b)+n.size()+macSize > MaxPacket {
			break
		}
		b = n.append(b)
		taken++
	}
	return sign(b, key), taken
}

// open reads a datagram that is for the process with the token. It also returns the acknowledgement.
func open(b []byte, token [tokenSize]byte, keys ...row.WakeKey) (notices []Notice, ack []byte, err error) {
	h, _, ok := readHeader(b)
	if !ok || h.kind != kindNotice || !bytes.Equal(h.token[:], token[:]) || len(b) > MaxPacket {
		return nil, nil, errPacket
	}
	signed, key, ok := authentic(b, keys...)
	if !ok {
		return nil, nil, errPacket
	}
	for rest := signed[headerSize:]; len(rest) > 0; {
		var n Notice
		if n, rest, ok = readNotice(rest); !ok {
			return nil, nil, errPacket
		}
		notices = append(notices, n)
	}
	if len(notices) == 0 {
		return nil, nil, errPacket // its acknowledgement would be as long
	}
	return notices, sign(header{kindAck, token, h.id}.append(make([]byte, 0, headerSize+macSize)), key), nil
}

// acknowledged reads an acknowledgement of the process with the token.
func acknowledged(b []byte, token [tokenSize]byte, keys ...row.WakeKey) (id uint64, ok bool) {
	h, _, ok := readHeader(b)
	if !ok || h.kind != kindAck || h.token != token || len(b) != headerSize+macSize {
		return 0, false
	}
	_, _, ok = authentic(b, keys...)
	return h.id, ok
}
