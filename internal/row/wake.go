package row

import (
	"encoding/json"
	"log/slog"
)

// Wake says how a node is told of rows that it cannot have seen: by a datagram to its address, see package wake. Each
// node writes its own into its row, as JSON. A node of an older version writes none.
type Wake struct {
	// Token belongs to the process that wrote it. An older version may take a number over and leave the column as it
	// was.
	Token   string   `json:"token"`
	Address string   `json:"address,omitempty"` // "" for a process that receives none
	Key     WakeKey  `json:"key,omitempty"`
	Pops    []string `json:"pops,omitempty"` // tags that were popped there lately, or AllTags

	// Server is the server, or the cluster, that the store wrote this to; "" where that is not known. Elsewhere it was
	// replicated.
	Server string `json:"server,omitempty"`

	// Unreachable has the tokens of the nodes that do not acknowledge what this one tells them.
	Unreachable []string `json:"unreachable,omitempty"`
}

// AllTags stands for tags that are too many to be listed.
const AllTags = "*"

// WakeKey is what messages to a node are signed with. It is not shown.
type WakeKey []byte

func (WakeKey) String() string   { return "…" }
func (WakeKey) GoString() string { return "…" }

// LogValue implements [slog.LogValuer].
func (WakeKey) LogValue() slog.Value { return slog.StringValue("…") }

// mostWake is more bytes than any process writes.
const mostWake = 64 << 10

// ReadWake reads the column of the process with the token. It is zero for anything else.
func ReadWake(column []byte, token string) (w Wake) {
	if len(column) > mostWake || json.Unmarshal(column, &w) != nil || w.Token != token {
		return Wake{}
	}
	return w
}

// Column returns what is stored, nil for the zero Wake.
func (w Wake) Column() []byte {
	if w.Token == "" {
		return nil
	}
	column, _ := json.Marshal(w) // it always marshals
	return column
}
