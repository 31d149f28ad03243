package cluster

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// The primary of a group is killed, and an address that leads to the primary, as a router's does, leads to the next one.
func TestSchedulersFollowTheNextPrimary(t *testing.T) {
	c := dbtest.NewMortalCluster(t, dbtest.Group, true)
	d := c.Database(t)
	var primary atomic.Int64
	const network = "primary"
	addrs := make([]string, len(d.Members))
	for i, dsn := range d.Members {
		addrs[i] = config(t, dsn).Addr
	}
	mysql.RegisterDialContext(network, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addrs[primary.Load()])
	})
	t.Cleanup(func() { mysql.DeregisterDialContext(network) })
	router := config(t, d.Members[0])
	router.Net, router.Addr = network, "router"

	l := newLedger()
	first, second := open(t, router.FormatDSN(), l.process), open(t, router.FormatDSN(), l.process)
	watch(t, d)
	start(t, first)
	start(t, second)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { l.save(t, first, done) })
	wg.Go(func() { l.save(t, second, done) })
	l.more(t, 100)
	c.Kill(t, 0)
	eventually(t, "another member is the primary", func() bool {
		const ask = "SELECT member_port FROM performance_schema.replication_group_members" +
			" WHERE member_role = 'PRIMARY' AND member_state = 'ONLINE'"
		var port string
		if err := pool(t, d.Members[1]).QueryRowContext(t.Context(), ask).Scan(&port); err != nil {
			return false
		}
		next := slices.IndexFunc(addrs, func(addr string) bool {
			_, p, err := net.SplitHostPort(addr)
			return err == nil && p == port
		})
		primary.Store(int64(max(next, 0)))
		return next > 0
	})
	l.more(t, 100)
	c.Rejoin(t, 0)
	l.more(t, 100)
	close(done)
	wg.Wait()
	l.audit(t, d.Members)
}

func config(t *testing.T, dsn string) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
