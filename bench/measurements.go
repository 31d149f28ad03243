package main

import (
	"slices"

	"github.com/delaytask/delaytask/internal/bench"
)

// measurements returns what the command measures, and more.
func (o *options) measurements() []bench.Measurement {
	return slices.Concat(bench.Measurements, []bench.Measurement{
		save256, saveTx, keyed,
		o.shortLateness(shortHere, "saved and run by one process"),
		o.shortLateness(shortSaves, "saved by a process that serves nothing"),
		o.shortLateness(shortTx, "saved in a transaction of such a process"),
		o.shortLateness(shortCommitted, "likewise, and told by Committed"),
		o.shortLateness(shortPoll, "saved by such a process, with wake-ups off"),
		o.shortLateness(shortPop, "saved by such a process, and popped"),
		schedulesTicks, schedulesMidnight, schedulesMany, schedulesBackfill,
		o.idle(), o.memoryTimers(), o.restart(), o.purge(), o.growth(),
		o.httpSave(), o.httpSaveBatch(), o.httpPop(1000), o.httpPop(5000), o.httpPoll(), o.httpIdle(),
		o.httpWebhook(1000),
		nodesDrain.by(1), nodesDrain.by(fleetSize), nodesFlood.by(1), nodesFlood.by(fleetSize), nodesPunctual,
		nodesRolling, o.nodesCrowd(), o.nodesDeploy(), o.nodesDBRestart(), o.nodesGoodput(),
		o.uiViewers(), o.uiReads(), o.coldReads(), rollupSave, rollupDrain,
	})
}
