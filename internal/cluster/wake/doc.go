// Package wake tells other processes of rows that they cannot have seen, by one small UDP datagram.
//
// A datagram names tags and moments. It carries no task and decides nothing: who gets it reads the table. So one that
// is lost, doubled, late or forged costs at most a read.
//
// Each process that listens writes its address and a random key into its row of delay_task_node. Who tells it signs
// with that key, so only those who can read the table can make it read. The key is renewed every hour, and the one
// before it is still taken. Each datagram names the process that it is for, by a token that is drawn at its start. An
// authentic one is acknowledged, and the acknowledgement is never longer.
//
//	notice.go    is what one process tells another
//	packet.go    makes datagrams of it, and opens them
//	address.go   decides where to listen, and which addresses are never sent to
//	listener.go  receives datagrams, at most so many a second
//	sender.go    sends to one process until it acknowledges
//	endpoint.go  is all of that for one process
package wake
