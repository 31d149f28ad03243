package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
	"github.com/rs/zerolog/log"
)

func init() { log.Logger = zerolog.Nop() } // toxics log to it

// network is toxiproxy's links, which know bytes alone, between the client and the code that knows packets and
// statements. A separate proxy would not do: behind this one it would get whole packets to slice, before it would turn
// resets into ends.
type network struct {
	server *toxiproxy.ApiServer
	ways   *toxiproxy.Proxy // only its collection of toxics: it never listens
	laid   atomic.Int64
}

func newNetwork() *network {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return &network{server: server, ways: toxiproxy.NewProxy(server, "", "", "")}
}

// lay connects a client through the network. At the end of to the client is reset. Everything has ended when done has.
func (n *network) lay(client *net.TCPConn) (from *io.PipeReader, to *io.PipeWriter, done *sync.WaitGroup) {
	from, arrives := io.Pipe()
	leaves, to := io.Pipe()
	done = new(sync.WaitGroup)
	done.Add(2)
	id := fmt.Sprint(n.laid.Add(1)) // the client's address may be used again before all has ended
	up, down := sink{arrives, func() { _ = arrives.Close() }, done}, sink{client, func() { reset(client) }, done}
	n.link(id+"up", client, up, stream.Upstream)
	n.link(id+"down", leaves, down, stream.Downstream)
	return from, to, done
}

// link carries one direction. Toxiproxy forgets it before it sees the end of what is sent: a toxic that it removes from
// a link that is ending stays in its list, and the next one that it adds there ends the process by a panic.
func (n *network) link(name string, from io.Reader, to sink, direction stream.Direction) {
	n.ways.Toxics.StartLink(n.server, name, source{from, func() { n.ways.Toxics.RemoveLink(name) }}, to, direction)
}

type source struct {
	io.Reader
	ended func()
}

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		s.ended()
	}
	return n, err
}

// sink takes all bytes, also after the end: a link whose end refuses bytes never ends.
type sink struct {
	to    io.Writer
	close func()
	done  *sync.WaitGroup
}

func (s sink) Write(p []byte) (int, error) {
	_, _ = s.to.Write(p)
	return len(p), nil
}

func (s sink) Close() error {
	s.close()
	s.done.Done()
	return nil
}

// Degrade makes the network bad, beside what is wrong with it already.
func (p *Proxy) Degrade(what ...Toxic) error {
	for i, t := range what {
		for _, t.Stream = range []string{stream.Upstream.String(), stream.Downstream.String()} {
			t.Name = fmt.Sprint(i, t.Type, t.Stream)
			text, err := json.Marshal(t)
			if err != nil {
				return fmt.Errorf("describe a network: %w", err)
			}
			if _, err := p.network.ways.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
				return fmt.Errorf("make a network bad by %s: %w", text, err)
			}
		}
	}
	return nil
}

func (p *Proxy) Recover() { p.network.ways.Toxics.ResetToxics(context.Background()) }

var errClosed = errors.New("the proxy is closed")

// Toxic is something that is wrong with a network, both ways. It is put together by toxiproxy.
type Toxic struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Attributes any    `json:"attributes"`
}

// Latency delays what is sent, by a time that is drawn between the two.
func Latency(least, most time.Duration) Toxic {
	middle := (least + most) / 2
	return Toxic{Type: "latency", Attributes: toxics.LatencyToxic{
		Latency: middle.Milliseconds(), Jitter: (middle - least).Milliseconds(),
	}}
}

// Bandwidth lets rate KB a second through each connection.
func Bandwidth(rate int64) Toxic {
	return Toxic{Type: "bandwidth", Attributes: toxics.BandwidthToxic{Rate: rate}}
}

// Slices cuts data into pieces of about size bytes, and waits between them.
func Slices(size int, pause time.Duration) Toxic {
	return Toxic{Type: "slicer", Attributes: toxics.SlicerToxic{
		AverageSize: size, SizeVariation: size / 2, Delay: int(pause.Microseconds()),
	}}
}

// Break resets each connection after so many bytes, those that are open and new ones. Toxiproxy's own
// toxics that end connections leave goroutines behind when there is more to send.
func Break(after int64) Toxic { return Toxic{Type: breaking, Attributes: breaks{after}} }

const breaking = "break"

func init() { toxics.Register(breaking, new(breaks)) }

type breaks struct {
	After int64 `json:"after"`
}

// Pipe carries one direction of one connection.
func (b *breaks) Pipe(stub *toxics.ToxicStub) {
	for left := b.After; ; {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			n := min(left, int64(len(c.Data)))
			if n > 0 {
				stub.Output <- &stream.StreamChunk{Data: c.Data[:n], Timestamp: c.Timestamp}
			}
			if left -= n; left <= 0 {
				stub.Close()
				for range stub.Input { // until the sender has seen the end
					continue
				}
				return
			}
		}
	}
}
