package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// softMemory is how many bytes a service takes before its garbage is collected sooner.
	softMemory = 208 << 20
	// memoryEvery is how often keepMemory looks at what is in use.
	memoryEvery = 500 * time.Millisecond
)

// keepMemory keeps the memory of a service near softMemory until the context ends. By itself the collector would let
// garbage grow to the size of all that requests hold. Where more is in use, a third of it is left for garbage, so
// that the collector does not take the processors. GOMEMLIMIT holds instead where it is set.
func keepMemory(ctx context.Context, getenv func(string) string) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(softMemory))
	taken := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	for {
		metrics.Read(taken)
		live, rest := int64(taken[0].Value.Uint64()), int64(taken[1].Value.Uint64())
		for _, objects := range taken[2:] {
			rest -= int64(objects.Value.Uint64())
		}
		debug.SetMemoryLimit(max(softMemory, rest+live*4/3))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
