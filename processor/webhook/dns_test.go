package webhook

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
)

// freshName is a name that no machine has in its hosts file: a resolver looks there before it asks a server.
func freshName() string { return strings.ToLower(rand.Text()) + ".test" }

// fakeDNS is a resolver whose server answers with what lookup says for a name.
func fakeDNS(lookup func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerDNS(theirs, lookup)
		return ours, nil
	}}
}

// answerDNS answers one question in the framing of TCP (RFC 1035, 4.1 and 4.2.2).
func answerDNS(conn net.Conn, lookup func(name string) []string) {
	defer conn.Close()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	var labels []string
	end := 12
	for query[end] != 0 {
		size := int(query[end])
		labels = append(labels, string(query[end+1:end+1+size]))
		end += 1 + size
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	question := query[12 : end+5]

	var answers []byte
	count := 0
	for _, text := range lookup(strings.Join(labels, ".")) {
		addr := netip.MustParseAddr(text)
		if (kind == 1) != addr.Is4() { // A is 1, AAAA 28
			continue
		}
		answers = append(answers, 0xc0, 12) // the name of the question
		answers = binary.BigEndian.AppendUint16(answers, kind)
		answers = append(answers, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
		answers = binary.BigEndian.AppendUint16(answers, uint16(len(addr.AsSlice())))
		answers = append(answers, addr.AsSlice()...)
		count++
	}
	reply := append([]byte{}, query[:2]...)
	reply = append(reply, 0x81, 0x80, 0, 1, 0, byte(count), 0, 0, 0, 0) // one question, so many answers
	reply = append(append(reply, question...), answers...)
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
}
