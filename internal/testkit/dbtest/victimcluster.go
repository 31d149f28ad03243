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

// Cluster is a cluster of servers whose members its owner may kill and bring back. It is gone when it is closed, and
// also when the process of its owner is killed. Two members of the three have to be there at any time.
type Cluster struct {
	server *server
	keeper *obedient
}

// Create makes an empty database, which goes away with the cluster.
func (c *Cluster) Create(ctx context.Context) (Database, error) { return c.server.lasting(ctx) }

// String names the cluster with its version.
func (c *Cluster) String() string { return c.server.String() }

// Size is how many members it has.
func (c *Cluster) Size() int { return len(c.server.members) }

// Close ends the members and removes their data.
func (c *Cluster) Close() error { return c.server.stop() }

// Kill sends SIGKILL to a member and returns when it is gone.
func (c *Cluster) Kill(member int) error { return c.keeper.order(fmt.Sprint("fell ", member)) }

// Rejoin starts a member after Kill and returns when it has what the others have.
func (c *Cluster) Rejoin(member int) error { return c.keeper.order(fmt.Sprint("again ", member)) }

// Freeze sends SIGSTOP to a member. The others may go on without it after some seconds.
func (c *Cluster) Freeze(member int) error { return c.keeper.order(fmt.Sprint("still ", member)) }

// Thaw sends SIGCONT.
func (c *Cluster) Thaw(member int) error { return c.keeper.order(fmt.Sprint("moving ", member)) }

// Spare ends the members and moves their folders, with their data and logs, to the path, where Close does not remove
// them. Then the cluster can only be closed.
func (c *Cluster) Spare(path string) error { return c.keeper.order("spare " + path) }

// steady is how long all members have to agree that they are all there. One that was away believes for some moments in
// what it knew before, and the others may have expelled it already, or be about to.
const steady = 3 * time.Second

// Await returns when the cluster is whole again, or an error when that takes longer than the limit.
func (c *Cluster) Await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	since := time.Now()
	for {
		err := c.Whole(ctx)
		if err == nil && time.Since(since) > steady {
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

// counted asks a member, which also may not answer at all, how many take part with it. One that does not counts none.
var counted = map[Kind]string{
	Galera: "SELECT COALESCE(SUM(n.variable_value), 0) FROM information_schema.global_status n, information_schema.global_status s" +
		" WHERE n.variable_name = 'wsrep_cluster_size' AND s.variable_name = 'wsrep_local_state_comment' AND s.variable_value = 'Synced'",
	Group: "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'" +
		" AND (@@group_replication_single_primary_mode OR NOT @@super_read_only)",
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

// Alone returns the members that do not answer, or are no part of a majority.
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

const obeyForCluster = `
begin() { "$1" "$2" "$3" "$dir" $4; }
fell() { n=$1; shift; "$1" kill "$dir" "$n"; }
again() { n=$1; shift; "$1" rejoin "$3" "$dir" "$n"; }
still() { server=$(cat "$dir/$1/mysqld.pid") && freeze; }
moving() { server=$(cat "$dir/$1/mysqld.pid") && thaw; }
crash() { "$1" down "$dir"; }
` + obey

// NewCluster starts three members by the scripts in test/servers. A group takes writes on its primary alone when single
// says so.
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
	args := []string{"-c", obeyForCluster, "keeper", dir, script, verb, strconv.Itoa(port)}
	if single {
		args = append(args, "single")
	}
	keeper, stop, err := keep(exec.Command("/bin/sh", args...), dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{keeper: keeper}
	if err := keeper.order("begin"); err != nil {
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
