// Package cluster knows the nodes and what each one does: the identity of this process, its leased node number and
// heartbeat, the ids made from that number, and the rule by which exactly one live node arms a new task.
//
// There is no leader and no election. Every node computes the same answer from the same registry rows; where two views
// differ for a moment, two nodes arm a task (one claim wins) or none does (the overdue poll and the compensating scan
// find it).
package cluster
