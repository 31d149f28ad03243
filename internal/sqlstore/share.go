package sqlstore

// use is a kind of write. Each has connections of its own, so that none waits behind another.
type use int

const (
	saves      use = iota // of rows that can meet no other, which as a rule wait for nothing
	keyedSaves            // each can wait a second for the open transaction that holds its key
	claims
	results
	renewals // short leases cannot wait while the statement of longer ones waits for a lock
	beats    // a node whose heartbeat waits behind a lease drops out of its own view
	probes   // look for locked rows while others wait for them
	chores   // purge and rare writes
	uses
)

// turns is which kind gets the next connection. In the end single saves have two and bulk ones three.
var turns = [...]use{
	saves, keyedSaves, claims, renewals, beats, results, chores, probes, claims, results, renewals,
	saves, keyedSaves, saves, claims, keyedSaves, saves, keyedSaves, saves,
}

// hosts is whose connections a kind uses while it has none of its own. No chore and no result waits longer for a lock
// than its host does, and what waits for none is behind a renewal.
var hosts = map[use]use{beats: renewals, probes: renewals, results: claims, chores: keyedSaves}

const (
	// fewest is how many connections the writes get along with.
	fewest = 4
	// readers is how many connections of the pool the reads need beside the reserved ones.
	readers = 2
)

// needed is the smallest pool for that concurrency. Tasks that end at once need connections to end on, up to where more
// of them help no further.
func needed(concurrency int) int { return readers + min(max(concurrency, fewest), len(turns)) }

// reserved is how many connections of a pool the writes keep; 0 stands for a pool without a limit.
func reserved(pool, concurrency int) int {
	if pool == 0 || pool >= readers+len(turns) {
		return len(turns)
	}
	return needed(concurrency) - readers
}

// share opens the lanes that n connections allow.
func share(n int, open func(size int) *lane) (lanes [uses]*lane) {
	var sizes [uses]int
	for _, u := range turns[:n] {
		sizes[u]++
	}
	for u, size := range sizes {
		if size > 0 {
			lanes[u] = open(size)
		}
	}
	for guest, host := range hosts {
		if lanes[guest] == nil {
			lanes[guest] = lanes[host]
		}
	}
	return lanes
}
