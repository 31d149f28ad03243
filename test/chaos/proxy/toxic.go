package proxy

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

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

// Bandwidth lets so many KB a second through each connection.
func Bandwidth(rate int64) Toxic {
	return Toxic{Type: "bandwidth", Attributes: toxics.BandwidthToxic{Rate: rate}}
}

// Slices lets about so many bytes travel at once, and waits between them.
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
