package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// childCommand is the argument that makes this program a child.
const childCommand = "child"

// order is what a child gets on its standard input. A DSN may hold a password, and others can read arguments.
type order struct {
	Role  string `json:"role"`
	DSN   string `json:"dsn"`
	Count int    `json:"count"` // of tasks to save
}

// roles run until their ctx ends, which is when the parent closes their input or dies, or until they have nothing left to do.
var roles = map[string]func(context.Context, order, *teller) error{
	"crash":  crashChild,
	"memory": memoryChild,
	"other":  otherChild,
	"idle":   idleChild,
}

func childMain(ctx context.Context) int {
	var o order
	orders := json.NewDecoder(os.Stdin)
	if err := orders.Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, "proof: read the order:", err)
		return exitBroken
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any end is the end
		cancel()
	}()
	if err := roles[o.Role](ctx, o, &teller{events: json.NewEncoder(os.Stdout)}); err != nil {
		fmt.Fprintf(os.Stderr, "proof: the child for %s: %v\n", o.Role, err)
		return exitBroken
	}
	return 0
}

// teller writes events for the parent, each whole in one write.
type teller struct {
	mu     sync.Mutex
	events *json.Encoder
}

func (t *teller) tell(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.events.Encode(event) // a parent that no longer listens has closed the input too
}
