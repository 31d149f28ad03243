package dbtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// membersNet is a network whose addresses name several servers, as in members(127.0.0.1:3306|127.0.0.1:3307). Each new
// connection goes to the next of them that answers, as behind a balancer.
const membersNet = "members"

var turn atomic.Uint32

func init() {
	turn.Store(rand.Uint32())
	mysql.RegisterDialContext(membersNet, func(ctx context.Context, addr string) (conn net.Conn, err error) {
		members := strings.Split(addr, "|")
		first := int(turn.Add(1) % 1024)
		for i := range members {
			if conn, err = new(net.Dialer).DialContext(ctx, "tcp", members[(first+i)%len(members)]); err == nil {
				return conn, nil
			}
		}
		return nil, err
	})
}

// causal makes every statement wait until its member has what the others had committed before. Without it a statement
// on one member may miss what was just written on another.
var causal = map[Kind]map[string]string{
	Galera: {"wsrep_sync_wait": "7"},
	Group:  {"group_replication_consistency": "'BEFORE'"},
}

// dialCluster asks servers that were named as members of one cluster what they are.
func dialCluster(ctx context.Context, members []*mysql.Config, origin string) (*server, error) {
	s, err := dial(ctx, members[0], origin)
	if err != nil {
		return nil, err
	}
	size := "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'"
	kind := Group
	if s.kind == MariaDB {
		size = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_cluster_size'"
		kind = Galera
	}
	db, err := open(members[0])
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var online int
	if err := db.QueryRowContext(ctx, size).Scan(&online); err != nil {
		return nil, err
	}
	if online < len(members) {
		return nil, fmt.Errorf("the cluster has %d members, and %d are named", online, len(members))
	}
	s.kind, s.members = kind, members
	return s, nil
}

// member is the next of the cluster's members, or the server itself.
func (s *server) member() *mysql.Config {
	if s.members == nil {
		return s.cfg
	}
	return s.members[int(turn.Add(1)%1024)%len(s.members)]
}

// spread is the DSN of a database whose connections go to the members in turns.
func (s *server) spread(database string) string {
	addrs := make([]string, len(s.members))
	for i, m := range s.members {
		addrs[i] = m.Addr
	}
	cfg := s.members[0].Clone()
	cfg.DBName, cfg.Net, cfg.Addr, cfg.Params = database, membersNet, strings.Join(addrs, "|"), causal[s.kind]
	return cfg.FormatDSN()
}

// awaitDatabase returns when every member has the database, which was created on one of them.
func (s *server) awaitDatabase(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, m := range s.members {
		for {
			err := run(ctx, m, "USE "+name)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s on the member at %s: %w", name, m.Addr, err)
			}
		}
	}
	return nil
}

// awaitLeft returns when no connection uses the database any more. Dropping a database on one member of a replication
// group while another still writes to it throws the first one out of the group.
func (s *server) awaitLeft(ctx context.Context, name string) error {
	if s.kind != Group {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, m := range s.members {
		if err := awaitLeft(ctx, m, name); err != nil {
			return fmt.Errorf("%s on the member at %s is in use: %w", name, m.Addr, err)
		}
	}
	return nil
}

func awaitLeft(ctx context.Context, member *mysql.Config, name string) error {
	db, err := open(member)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		var n int
		const connected = "SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_db = ?"
		if err := db.QueryRowContext(ctx, connected, name).Scan(&n); err != nil || n == 0 {
			return err
		}
	}
}
