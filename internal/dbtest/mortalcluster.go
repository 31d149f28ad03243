package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Cluster is a cluster of one test's own, whose members the test may kill and bring back. It is gone when the test ends, and also
// when the test process is killed.
type Cluster struct {
	server *server
	keeper *obedient
}

// NewCluster starts three members by the scripts in test/servers, where DELAYTASK_REQUIRE_DB asks for the kind; else the test is
// skipped. The group takes writes on its primary alone when single says so.
func NewCluster(tb testing.TB, kind Kind, single bool) *Cluster {
	tb.Helper()
	if !required(kind) {
		tb.Skipf("DELAYTASK_REQUIRE_DB does not ask for %s, and a cluster is not started unasked", kind)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	c, err := startCluster(ctx, kind, single)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.server.stop(); err != nil {
			tb.Error(err)
		}
	})
	tb.Logf("tested on %s", c.server)
	return c
}

// Database creates a database, which goes away with the cluster.
func (c *Cluster) Database(tb testing.TB) Database {
	tb.Helper()
	db, _, err := c.server.create(tb.Context())
	must(tb, err)
	return db
}

// Kill sends SIGKILL to a member and returns when it is gone.
func (c *Cluster) Kill(tb testing.TB, member int) {
	tb.Helper()
	must(tb, c.keeper.order(fmt.Sprint("fell ", member)))
}

// Rejoin starts a member after Kill and returns when it has what the others have.
func (c *Cluster) Rejoin(tb testing.TB, member int) {
	tb.Helper()
	must(tb, c.keeper.order(fmt.Sprint("again ", member)))
}

const obeyForCluster = `
begin() { "$1" "$2" "$3" "$dir" $4; }
fell() { n=$1; shift; "$1" kill "$dir" "$n"; }
again() { n=$1; shift; "$1" rejoin "$3" "$dir" "$n"; }
crash() { "$1" down "$dir"; }
` + obey

func startCluster(ctx context.Context, kind Kind, single bool) (*Cluster, error) {
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
	if c.server, err = dialCluster(ctx, members, "private cluster of one test"); err != nil {
		return nil, errors.Join(err, stop())
	}
	c.server.stop = stop
	return c, nil
}
