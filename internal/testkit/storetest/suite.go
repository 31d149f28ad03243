// Package storetest is the conformance suite of store.Store. Whatever passes it can stand under the engine.
//
// [Run] holds for every store. [RunTx], [RunLocks] and [RunBroken] need a way to do what the interface cannot: open a
// transaction, lock a row from outside, store garbage. [Model] compares a store with a reference model under random
// operations.
package storetest

import (
	"testing"

	"github.com/delaytask/delaytask/internal/store"
)

// test is one sentence of the contract.
type test struct {
	name string
	run  func(t *tester)
}

// Run tests the contract on stores that open returns: each one empty and closed by t.Cleanup. Where stores do not
// disturb each other, open may call t.Parallel.
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
		{"Bulk", bulkTests},
	}
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			run(t, topic.tests, func(t *testing.T) *tester { return newTester(t, open(t)) })
		})
	}
}

func run(t *testing.T, tests []test, open func(t *testing.T) *tester) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(open(t)) })
	}
}
