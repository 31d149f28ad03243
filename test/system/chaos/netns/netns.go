// Package netns gives processes networks of their own, whose cables can be pulled: then no packet passes, and neither
// side gets an error, as in a partition. It needs root and Linux.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Net is a bridge of this machine with one cable to each network.
type Net struct {
	bridge string
	subnet int
	spaces []string // names of networks; the cable to the i-th is cable(i)
}

// ErrNone is returned by New where networks cannot be made.
var ErrNone = errors.New("networks of their own want root and ip netns")

func New(ctx context.Context) (*Net, error) {
	if os.Geteuid() != 0 {
		return nil, ErrNone
	}
	pid := os.Getpid()
	n := &Net{bridge: fmt.Sprint("dtc", pid), subnet: pid % 256}
	err := ip(ctx,
		"link add "+n.bridge+" type bridge",
		"addr add "+n.Addr()+"/24 dev "+n.bridge,
		"link set "+n.bridge+" up")
	if err != nil {
		return nil, errors.Join(ErrNone, err, n.Close(ctx))
	}
	return n, nil
}

// Addr is this machine's address in all the networks.
func (n *Net) Addr() string { return n.addr(1) }

func (n *Net) addr(host int) string { return fmt.Sprintf("10.213.%d.%d", n.subnet, host) }

func (n *Net) cable(i int) string { return fmt.Sprint(n.bridge, "v", i) }

func (n *Net) Add(ctx context.Context) (string, error) {
	i := len(n.spaces)
	name := fmt.Sprint(n.bridge, "-", i)
	n.spaces = append(n.spaces, name)
	return name, ip(ctx,
		"netns add "+name,
		"link add "+n.cable(i)+" type veth peer name eth0 netns "+name,
		"link set "+n.cable(i)+" master "+n.bridge+" up",
		"-n "+name+" addr add "+n.addr(2+i)+"/24 dev eth0",
		"-n "+name+" link set lo up",
		"-n "+name+" link set eth0 up")
}

// Pull takes the cable of a network out of the bridge.
func (n *Net) Pull(ctx context.Context, name string) error { return n.plug(ctx, name, "nomaster") }

func (n *Net) Plug(ctx context.Context, name string) error {
	return n.plug(ctx, name, "master "+n.bridge)
}

func (n *Net) plug(ctx context.Context, name, where string) error {
	for i, space := range n.spaces {
		if space == name {
			return ip(ctx, "link set "+n.cable(i)+" "+where)
		}
	}
	return fmt.Errorf("there is no network %q", name)
}

// Close removes the networks, and with them their cables, and the bridge.
func (n *Net) Close(ctx context.Context) error {
	var errs []error
	for _, name := range n.spaces {
		errs = append(errs, ip(ctx, "netns del "+name))
	}
	return errors.Join(append(errs, ip(ctx, "link del "+n.bridge))...)
}

func ip(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
