package bench

import (
	"context"
	"slices"
	"strings"
	"time"
)

// measurement is one measurement of the registry.
type measurement struct {
	name    string // as Only names it; "raw.claim_batch" is also meant by "raw"
	quick   bool   // part of a quick run
	apart   bool   // measured only when it is named
	once    bool   // takes long: one turn unless more are asked for; it comes after the turns of the others
	figures []figure

	// takes guesses the time of one turn, for the progress.
	takes func(workload) time.Duration
	// measure takes one turn. It adds a value to each of the figures that can be measured here.
	measure func(context.Context, *run) error
	// derive adds what follows from the medians of all measurements. May be nil.
	derive func(*figures)
}

// figure is a key of the report and its meaning.
type figure struct{ key, about string }

// registry is in the order in which turns are taken: raw and delaytask alternate.
var registry = []measurement{
	rawInsertSingle, save,
	rawInsertBatch, saveBulk, saveTx,
	rawClaimBatch, rawSettleBatch, drain,
	keyed, latenessAt(100), latenessAt(500), latenessAt(2000), latenessAt(5000), latencyNow, latencyOther,
	lateShort(shortSaves, "saved by a process that serves nothing"),
	lateShort(shortTx, "saved in a transaction of such a process"),
	lateShort(shortCommitted, "likewise, and told by Committed"),
	lateShort(shortPoll, "saved by such a process, with wake-ups off"),
	lateShort(shortPop, "saved by such a process, and popped"),
	schedulesTicks, schedulesMidnight, schedulesMany, schedulesBackfill,
	idle, memoryTimers, restart, purge, growth,
	httpSave, httpSaveBatch, httpPopAt(1000), httpPopAt(5000), httpPoll, httpIdle, httpWebhookAt(1000),
	nodesDrain.by(1), nodesDrain.by(fleetSize), nodesFlood.by(1), nodesFlood.by(fleetSize), nodesPunctual, nodesRolling,
	uiViewers, uiMeasured, cold, rollupSave, rollupDrain,
}

// Names lists all measurements.
func Names() []string {
	names := make([]string, len(registry))
	for i, m := range registry {
		names[i] = m.name
	}
	return names
}

// called reports whether a name of Only selects the measurement: its name, a prefix of it, or a part of the report that
// it adds to.
func (m measurement) called(name string) bool {
	return m.name == name || strings.HasPrefix(m.name, name+".") ||
		slices.ContainsFunc(m.figures, func(f figure) bool {
			return f.key == name || strings.HasPrefix(f.key, name+".")
		})
}

// chosen lists the selected measurements.
func (o Options) chosen() []measurement {
	var chosen []measurement
	for _, m := range registry {
		switch {
		case len(o.Only) > 0 && !slices.ContainsFunc(o.Only, m.called):
		case len(o.Only) == 0 && (m.apart || o.Quick && !m.quick):
		default:
			chosen = append(chosen, m)
		}
	}
	return chosen
}
