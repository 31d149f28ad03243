// Package storetest is the conformance suite of store.Store. The engine runs on any store that passes it.
//
// [Run] is for every store. [RunTx], [RunLocks] and [RunBroken] need what the interface cannot do: open a transaction,
// lock a row from outside, store garbage. [Model] compares a store with a reference model under random operations.
package storetest

import (
	"testing"

	"github.com/delaytask/delaytask/internal/store"
)

// Run tests the contract on the stores that open returns, each of them empty and closed by t.Cleanup. Where stores are
// independent, open may call t.Parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	topics := []struct {
		name  string
		tests []test
	}{
		{"Clock", clockTests},
		{"Context", contextTests},
		{"Insert", insertTests},
		{"Get", getTests},
		{"Key", keyTests},
		{"Due", dueTests},
		{"Claim", claimTests},
		{"Race", raceTests},
		{"Renew", renewTests},
		{"Update", updateTests},
		{"Expired", expiredTests},
		{"States", statesTests},
		{"Adopt", adoptTests},
		{"Discard", discardTests},
		{"Purge", purgeTests},
		{"List", listTests},
		{"Stats", statsTests},
		{"Nodes", nodesTests},
		{"Tags", tagsTests},
		{"Schedules", scheduleTests},
		{"Forecast", forecastTests},
		{"Rollups", rollupTests},
		{"Audit", auditTests},
		{"Bulk", bulkTests},
	}
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			run(t, topic.tests, func(t *testing.T) *tester { return newTester(t, open(t)) })
		})
	}
}
