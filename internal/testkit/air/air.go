// Package air carries wake-ups between the engines of a test, well or badly.
package air

import (
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/row"
)

// Fate decides after how long each copy of a datagram arrives. None loses it. It may change what is told, as a forger
// does.
type Fate func(notices []wake.Notice) (arrives []time.Duration)

// Network connects endpoints.
type Network struct {
	mu   sync.Mutex
	hear map[string]func([]wake.Notice)
}

// Endpoint is the endpoint of one engine. It implements arm.Waker.
type Endpoint struct {
	network *Network
	fate    Fate
	token   string
}

// Endpoint returns an endpoint of the network. Without a fate all that it tells arrives soon.
func (n *Network) Endpoint(fate Fate) *Endpoint { return &Endpoint{network: n, fate: fate} }

// Listen implements arm.Waker.
func (e *Endpoint) Listen(token string, hear func([]wake.Notice)) {
	e.network.mu.Lock()
	defer e.network.mu.Unlock()
	if e.network.hear == nil {
		e.network.hear = map[string]func([]wake.Notice){}
	}
	e.token = token
	e.network.hear[token] = hear
}

// Notify implements arm.Waker.
func (e *Endpoint) Notify(n row.Node, notices ...wake.Notice) {
	arrives := []time.Duration{100 * time.Microsecond}
	if e.fate != nil {
		notices = slices.Clone(notices)
		arrives = e.fate(notices)
	}
	for _, after := range arrives {
		time.AfterFunc(after, func() { e.network.deliver(n.Token, notices) })
	}
}

func (n *Network) deliver(token string, notices []wake.Notice) {
	n.mu.Lock()
	hear := n.hear[token]
	n.mu.Unlock()
	if hear != nil {
		hear(notices)
	}
}

// Row implements arm.Waker.
func (e *Endpoint) Row(token string) row.Wake { return row.Wake{Token: token} }

// Close implements arm.Waker.
func (e *Endpoint) Close() {
	e.network.mu.Lock()
	defer e.network.mu.Unlock()
	delete(e.network.hear, e.token)
}
