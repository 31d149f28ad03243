package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// ErrReplica is returned by RefuseReplica.
var ErrReplica = errors.New("delaytask: the server is a replica")

// ReplicaOf returns the address of the server whose changes this one is applying now, "" for none. Members of a
// replication group do not count, and neither does a promoted replica, whose threads are stopped. Where the account may
// not ask, see [IsDenied], the heartbeats of nodes that write to another server tell. That is not sure soon after a
// failover.
func (i Inspector) ReplicaOf(ctx context.Context, alive IsAlive) (source string, sure bool, err error) {
	source, err = i.replicaOf(ctx)
	if IsDenied(err) {
		if server, sure, failed := i.heartbeatsOf(ctx, alive); failed == nil && server != "" {
			return server, sure, nil
		}
	}
	return source, true, err
}

// RefuseReplica returns ErrReplica, and what to do, when ReplicaOf names a server. It waits until that is sure. A
// server that cannot be asked is not refused.
func (i Inspector) RefuseReplica(ctx context.Context, alive IsAlive) error {
	if !i.HasRowLocks() {
		return nil
	}
	for {
		source, sure, err := i.ReplicaOf(ctx, alive)
		switch {
		case err != nil, sure && source == "":
			return nil
		case sure:
			return fmt.Errorf("%w: it applies the changes of %s (point the DSN at that server, or allow it with"+
				" on_replica, Config.OnReplica in Go)", ErrReplica, source)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

// IsAlive reports whether a node lives, by its heartbeat and the database's time.
type IsAlive func(row.Node, row.Time) bool

const (
	// afterFailover is for how long, after one, live nodes may name the server that was before: until their processes
	// have found where new connections lead.
	afterFailover = followEvery + 5*time.Second
	lookAgain     = 500 * time.Millisecond
)

// heartbeatsOf returns another server that live nodes write to, "" for none, and whether they have named it for so long
// that it is replicated from there. A server that takes no writes is no place for nodes, and is not asked.
func (i Inspector) heartbeatsOf(ctx context.Context, alive IsAlive) (server string, sure bool, err error) {
	if i.s.servers == nil {
		return "", false, nil
	}
	here, err := identify(ctx, i.s.db)
	if err != nil || !here.writable {
		return "", false, err
	}
	nodes, reading, err := i.s.Nodes(ctx)
	for _, n := range nodes {
		if n.Wake.Server != "" && n.Wake.Server != here.name && alive(n, reading.Time) {
			server = n.Wake.Server
		}
	}
	return server, i.s.servers.strangeFor(server != "") >= afterFailover, err
}

func (i Inspector) replicaOf(ctx context.Context) (source string, err error) {
	rows, err := readTexts(ctx, i.s.db, "SHOW REPLICA STATUS")
	for _, r := range rows {
		if strings.HasPrefix(r["channel_name"], "group_replication_") {
			continue
		}
		for _, names := range [][2]string{{"source_", "replica_"}, {"master_", "slave_"}} { // of MySQL, of MariaDB
			host, stopped := r[names[0]+"host"], "No" // else Yes, or what a thread is doing
			if host != "" && (r[names[1]+"sql_running"] != stopped || r[names[1]+"io_running"] != stopped) {
				return host + ":" + r[names[0]+"port"], nil
			}
		}
	}
	return "", classify("read whether the server is a replica", err)
}
