// Package cluster knows the nodes and what each one does. It holds the identity of this process, its leased node number
// and heartbeat, and the ids made from that number. A rule decides which live node arms a new task.
//
// There is no leader and no election. Every node computes the same answer from the same registry rows; where two views
// differ for a moment, two nodes arm a task (one claim wins) or none does (the overdue poll and the compensating scan
// find it).
package cluster
