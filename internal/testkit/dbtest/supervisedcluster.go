package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Cluster is a cluster of servers whose members its owner may kill and bring back. It ends when it is closed, and when
// the process of its owner dies. Two of the three members have to be there at any time.
type Cluster struct {
	server     *server
	supervisor *supervisor
}

// Create makes an empty database, which ends with the cluster.
func (c *Cluster) Create(ctx context.Context) (Database, error) { return c.server.lasting(ctx) }

// String names the cluster with its version.
func (c *Cluster) String() string { return c.server.String() }

// Size returns how many members the cluster has.
func (c *Cluster) Size() int { return len(c.server.members) }

// Close ends the members and removes their data.
func (c *Cluster) Close() error { return c.server.stop() }

// Kill sends SIGKILL to a member and returns when it is gone.
func (c *Cluster) Kill(member int) error {
	return c.supervisor.order(fmt.Sprint("kill_member ", member))
}

// Rejoin starts a member after Kill and returns when it has what the others have.
func (c *Cluster) Rejoin(member int) error { return c.supervisor.order(fmt.Sprint("rejoin ", member)) }

// Freeze sends SIGSTOP to a member. The others may go on without it after some seconds.
func (c *Cluster) Freeze(member int) error {
	return c.supervisor.order(fmt.Sprint("freeze_member ", member))
}

// Thaw sends SIGCONT.
func (c *Cluster) Thaw(member int) error {
	return c.supervisor.order(fmt.Sprint("thaw_member ", member))
}

// Spare ends the members and moves their folders, with their data and logs, to the path, where Close does not remove
// them. Then the cluster can only be closed.
func (c *Cluster) Spare(path string) error { return c.supervisor.order("spare " + path) }

// agreement is how long all members have to agree that they are all there. One that was away relies for a moment on
// what it knew before, while the others may be about to expel it.
const agreement = 3 * time.Second

// Await returns when the cluster is whole again, or with an error when that takes longer than the limit.
func (c *Cluster) Await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	since := time.Now()
	for {
		err := c.Whole(ctx)
		if err == nil && time.Since(since) > agreement {
			return nil
		}
		if err != nil {
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster does not become whole: %w", errors.Join(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Hangs is how long a commit of a member waits for its turn before the member counts as one that hangs.
const Hangs = 10 * time.Second

// counted asks a member how many members take part with it: 0 when it takes no part itself, or hangs: MySQL 9.7 may
// let all commits wait for a ticket although the member is online. It may not answer at all.
var counted = map[Kind]string{
	Galera: "SELECT COALESCE(SUM(n.variable_value), 0)" +
		" FROM information_schema.global_status n, information_schema.global_status s" +
		" WHERE n.variable_name = 'wsrep_cluster_size' AND s.variable_name = 'wsrep_local_state_comment'" +
		" AND s.variable_value = 'Synced'",
	Group: "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'" +
		" AND (@@group_replication_single_primary_mode OR NOT @@super_read_only)" +
		" AND NOT EXISTS (SELECT * FROM performance_schema.processlist" +
		" WHERE state = 'Waiting for Binlog Group Commit ticket'" +
		" AND time >= " + strconv.Itoa(int(Hangs/time.Second)) + ")",
}

// Whole returns an error unless every member counts all of them.
func (c *Cluster) Whole(ctx context.Context) error {
	for member := range c.server.members {
		there, err := c.countedBy(ctx, member)
		if err == nil && there < c.Size() {
			err = fmt.Errorf("it counts %d members", there)
		}
		if err != nil {
			return fmt.Errorf("member %d: %w", member, err)
		}
	}
	return nil
}

// Alone returns the members that do not answer, hang, or are outside of a majority.
func (c *Cluster) Alone(ctx context.Context) (members []int) {
	for member := range c.server.members {
		if there, err := c.countedBy(ctx, member); err != nil || there <= c.Size()/2 {
			members = append(members, member)
		}
	}
	return members
}

func (c *Cluster) countedBy(ctx context.Context, member int) (there int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	db, err := open(c.server.members[member])
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return there, db.QueryRowContext(ctx, counted[c.server.kind]).Scan(&there)
}

const superviseCluster = `
begin() { "$1" "$2" "$3" "$dir" $4; }
kill_member() { n=$1; shift; "$1" kill "$dir" "$n"; }
rejoin() { n=$1; shift; "$1" rejoin "$3" "$dir" "$n"; }
freeze_member() { server=$(cat "$dir/$1/mysqld.pid") && freeze; }
thaw_member() { server=$(cat "$dir/$1/mysqld.pid") && thaw; }
crash() { "$1" down "$dir"; }
` + superviseLoop

// NewCluster starts three members by the scripts in test/servers. With single, a group takes writes on its primary
// alone.
func NewCluster(ctx context.Context, kind Kind, single bool) (*Cluster, error) {
	path, verb := "test/servers/galera", "up"
	if kind == Group {
		path, verb = "test/servers/mysql", "cluster"
	}
	script, err := scriptAbove(path)
	if err != nil {
		return nil, err
	}
	port, err := steadyPort(ctx) // those that follow it are as likely to be free
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "delaytask-db-")
	if err != nil {
		return nil, err
	}
	args := []string{"-c", superviseCluster, "supervisor", dir, script, verb, strconv.Itoa(port)}
	if single {
		args = append(args, "single")
	}
	supervisor, stop, err := startSupervisor(exec.Command("/bin/sh", args...), dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{supervisor: supervisor}
	if err := supervisor.order("begin"); err != nil {
		return nil, errors.Join(err, stop())
	}
	members := make([]*mysql.Config, 3)
	for i := range members {
		members[i] = mysql.NewConfig()
		members[i].User, members[i].Net = "root", "tcp"
		members[i].Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i))
	}
	if c.server, err = dialCluster(ctx, members, "private cluster"); err != nil {
		return nil, errors.Join(err, stop())
	}
	c.server.stop = stop
	return c, nil
}
