package proxy

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

const (
	headSize   = 4
	comQuery   = 0x03
	replyError = 0xff
)

// packet is one of the client-server protocol, with its head: three bytes of length and one of sequence.
type packet []byte

// readPacket reads the next one. The packet is good until the next call with the same buffer.
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

// Kind tells statements apart as far as faults do.
type Kind string

// The statements that can lose their reply or their request.
const (
	Insert Kind = "insert" // saves tasks
	Claim  Kind = "claim"
	Settle Kind = "settle" // any other transition: results, retries, rescues, cancels
	Commit Kind = "commit" // of a transaction
	Other  Kind = ""
)

const table = "delay_task_message"

// kindOf goes by what the statement does, not by how it is written out, which differs between servers.
func kindOf(statement string) Kind {
	head := strings.ToUpper(statement[:min(len(statement), 32)])
	switch {
	case strings.HasPrefix(head, "COMMIT"):
		return Commit
	case strings.HasPrefix(head, "SELECT"), !strings.Contains(statement, table):
		return Other
	case strings.HasPrefix(head, "INSERT"):
		return Insert
	case !strings.HasPrefix(head, "UPDATE"), !strings.Contains(statement, "version = version + 1"):
		return Other // a purge, or a renewal, which changes no version
	case strings.Contains(statement, "status = 3, version = version + 1"):
		return Claim
	default:
		return Settle
	}
}

// ids of tasks have 63 bits, and the highest hold the time: 18 or 19 digits.
var ids = regexp.MustCompile(`\b[1-9][0-9]{17,18}\b`)

// maxIDs is how many ids of a statement are noted: enough to find its rows again.
const maxIDs = 8

func idsOf(statement string) []int64 {
	var found []int64
	for _, text := range ids.FindAllString(statement, -1) {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && len(found) < maxIDs {
			found = append(found, id)
		}
	}
	return found
}
