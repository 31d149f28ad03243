package proxy

import (
	"fmt"
	"io"
)

const (
	headSize   = 4
	comQuery   = 0x03
	replyError = 0xff
)

// packet is one of the client-server protocol, with its head: three bytes of length and one of sequence.
type packet []byte

// readPacket reads the next one. What it returns is good until the next call with the same buffer.
func readPacket(from io.Reader, buffer *[]byte) (packet, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, fmt.Errorf("read a packet's head: %w", err)
	}
	size := headSize + int(head[0]) + int(head[1])<<8 + int(head[2])<<16
	if cap(*buffer) < size {
		*buffer = make([]byte, size)
	}
	p := (*buffer)[:size]
	copy(p, head[:])
	if _, err := io.ReadFull(from, p[headSize:]); err != nil {
		return nil, fmt.Errorf("read a packet: %w", err)
	}
	return p, nil
}

// command returns the text of a statement that the client sends, or "". Numbering begins anew with each command, and
// the packets of the handshake go on from the server's, so only commands have the number 0.
func (p packet) command() string {
	if len(p) <= headSize || p[3] != 0 || p[headSize] != comQuery {
		return ""
	}
	return string(p[headSize+1:])
}

// refuses tells whether the server's packet says that the statement failed.
func (p packet) refuses() bool { return len(p) > headSize && p[headSize] == replyError }
