package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

const clockOff = 500 * time.Millisecond // as the log warns

// checkNodes looks at the processes, and compares the clocks.
func checkNodes(ctx context.Context, s *Subject) (found []Finding, err error) {
	nodes, reading, err := s.Store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var silent, versions []string
	for _, n := range nodes {
		switch {
		case n.Heartbeat.Sub(reading.Time) > clockOff:
			found = append(found, Finding{"clock_back", Warning,
				fmt.Sprintf("the heartbeat of node %d is %v ahead of the database's clock", n.Number,
					n.Heartbeat.Sub(reading.Time).Truncate(time.Millisecond)),
				"the clock was set back, or the database was failed over to a machine whose clock is behind",
				"chronyc tracking, on every machine of the database"})
		case !isAlive(n, reading.Time):
			silent = append(silent, fmt.Sprintf("%d (%s)", n.Number, n.Name))
		case !slices.Contains(versions, n.Version):
			versions = append(versions, n.Version)
		}
	}
	found = append(found, checkWakeUps(nodes, reading.Time)...)
	if len(silent) > 0 {
		found = append(found, Finding{"nodes_silent", Info, "processes have ended without a word: " + few(silent),
			"they were killed or cannot reach the database; their leases are rescued", "delaytask nodes"})
	}
	if len(versions) > 1 {
		found = append(found, Finding{"versions_mixed", Info,
			"the processes run several versions or builds: " + few(versions),
			"this is well during a rolling deploy", "delaytask nodes"})
	}
	offset, err := s.clockOffset(ctx)
	if err == nil && (offset > clockOff || offset < -clockOff) {
		found = append(found, Finding{"clock_offset", Warning,
			fmt.Sprintf("this machine's clock is %v off the database's", offset.Truncate(time.Millisecond)),
			"tasks are timed by the database's clock; times in logs and of SaveAt calls here are off",
			"chronyc tracking, here and on the machine of the database"})
	}
	return found, err
}

// checkWakeUps looks whether the processes can tell each other of tasks.
func checkWakeUps(nodes []row.Node, now row.Time) (found []Finding) {
	var unreachable, local []string
	hosts := map[string]bool{}
	for _, n := range nodes {
		if !isAlive(n, now) {
			continue
		}
		hosts[n.Host+" "+n.Name] = true
		name := fmt.Sprintf("%d (%s, %s)", n.Number, n.Name, n.Wake.Address)
		ap, err := netip.ParseAddrPort(n.Wake.Address)
		if len(n.Tags) > 0 && (err != nil || ap.Addr().IsLoopback()) {
			local = append(local, name)
		}
		for _, other := range nodes {
			if isAlive(other, now) && slices.Contains(other.Wake.Unreachable, n.Token) {
				unreachable = append(unreachable, fmt.Sprintf("%s from %d", name, other.Number))
			}
		}
	}
	if len(unreachable) > 0 {
		found = append(found, Finding{"wake_unreachable", Warning,
			"wake-ups are not acknowledged: " + few(unreachable),
			"a firewall drops UDP between them, so tasks that others save start up to 0.1 s late",
			"allow UDP to these addresses, or set wake.listen to one that can be reached"})
	}
	if len(hosts) > 1 && len(local) > 0 {
		found = append(found, Finding{"wake_local", Info,
			"processes are not told of tasks by other hosts: " + few(local),
			"tasks that other hosts save with short delays start up to 0.1 s late",
			"set wake.listen, or Wake of the Config, such as :7342"})
	}
	return found
}

// clockOffset returns by how much this machine's clock is certainly ahead: the reading was made between two of its own.
func (s *Subject) clockOffset(ctx context.Context) (time.Duration, error) {
	if s.Kind == sqlstore.SQLite {
		return 0, nil // on the same clock
	}
	before := row.At(time.Now())
	reading, err := s.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	after := row.At(time.Now())
	switch {
	case reading.Time < before:
		return before.Sub(reading.Time), nil
	case reading.Time > after:
		return after.Sub(reading.Time), nil
	}
	return 0, nil
}

func isAlive(n row.Node, now row.Time) bool { return cluster.IsAlive(n, now) }
