package sqlstore

// use is a kind of write. None waits behind another.
type use int

const (
	saves      use = iota // of rows without a key, which as a rule wait for no lock
	keyedSaves            // each may wait for an open transaction with the same key
	claims
	results
	renewals   // short leases cannot wait while the statement of longer ones waits for a lock
	beats      // a node whose heartbeat waits behind a lease drops out of its own cluster state
	lockChecks // look for locked rows while other writes wait for them
	scheduling // decisions: a transaction that waits for its schedules must hold up no save, and no save it
	chores     // purge and rare writes
	// What may wait for a locked range (see [store.Apart]), and what anyone may lock: the audit log and the names of
	// processes.
	apart
	uses
)

// atOnce is how many writes of each kind are sent at the same time. Bulk saves use three of the five for saves.
var atOnce = [uses]int{
	saves: 5, keyedSaves: 2, claims: 3, results: 2, renewals: 2, beats: 1, lockChecks: 1, scheduling: 1, chores: 1,
	apart: 4,
}

// batched holds the kinds of which an overloaded server gets fewer at once. What waits is sent together.
var batched = [uses]bool{claims: true, results: true}

// inAll is how many of all kinds are sent at the same time.
var inAll = sum(atOnce[:])

func sum(numbers []int) (n int) {
	for _, m := range numbers {
		n += m
	}
	return n
}

// hosts names the kind that another kind shares connections with where there are few. A chore or a result waits for
// locks no longer than its host does. Kinds that wait for no lock share with renewals.
var hosts = map[use]use{
	beats: renewals, lockChecks: renewals, results: claims, scheduling: claims, chores: keyedSaves,
	apart: keyedSaves,
}

// hostOf returns the kind that has the right to a connection of its own, when there are so many at most.
func hostOf(u use, most int) use {
	if u == saves && most < fewest {
		return renewals // neither waits for a lock
	}
	host, shares := hosts[u]
	if !shares || u == beats && most > fewest {
		return u
	}
	return host
}

const (
	// fewest is the smallest number of connections for writes.
	fewest = 4
	// crowded is the same where many nodes share the connections of a server.
	crowded = 3
	// enough is how many connections for writes processors of any concurrency can do with.
	enough = 20
	// readers is how many connections of the pool the reads need beside the writes.
	readers = 2
)

// needed returns the smallest pool for processors of that concurrency. Tasks that end at the same time each need a
// connection, up to a bound.
func needed(concurrency int) int { return readers + min(max(concurrency, fewest), enough) }

// mostOf returns how many connections of a pool the writes use at most. A pool of 0 has no limit.
func mostOf(pool, concurrency int) int {
	if pool == 0 || pool >= readers+inAll {
		return inAll
	}
	return max(min(needed(concurrency), pool)-readers, fewest)
}
