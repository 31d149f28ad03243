package wake

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Off is the setting of a process that does not listen.
const Off = "off"

// resolveTimeout bounds how long the start of a process waits for the name of its database to be resolved.
const resolveTimeout = time.Second

// Loopback is the setting of a process that hears processes of its host alone. The system chooses the port.
const Loopback = "127.0.0.1:0"

// CheckListen returns an error that says what is wrong with a setting.
func CheckListen(listen string) error {
	if listen == "" || listen == Off {
		return nil
	}
	_, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return fmt.Errorf(`%q is neither "off" nor an address and port such as ":7342" or "10.0.0.5:7342": %w`,
			listen, err)
	}
	return nil
}

// bindTo returns the address that a process listens on. When the setting names a port alone, the interface is the one
// that leads to the database: processes that share the database reach it there. With a database at loopback it is
// loopback.
func bindTo(listen, database string) (*net.UDPAddr, error) {
	at, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, err
	}
	if at.IP == nil || at.IP.IsUnspecified() {
		at.IP = localAddress(database)
	}
	return at, nil
}

// localAddress returns the address of this host that packets to the database come from, or one that other hosts could
// know when the database's is not known. Nothing is sent: to connect a UDP socket only chooses the route.
func localAddress(database string) net.IP {
	if database == "" {
		return anyAddress()
	}
	conn, err := net.DialTimeout("udp", net.JoinHostPort(database, "9"), resolveTimeout)
	if err != nil {
		return anyAddress()
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP
}

func anyAddress() net.IP {
	addresses, _ := net.InterfaceAddrs() // none leave loopback
	for _, a := range addresses {
		if ipNet, ok := a.(*net.IPNet); ok && ipNet.IP.IsGlobalUnicast() {
			return ipNet.IP
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// reserved begins the IPv4 addresses that no host has. The last one means all hosts.
const reserved = 240

// ofAll returns the addresses that mean all hosts of a network of this host: the last one, and of old the first one.
func ofAll(networks []net.Addr) (all []netip.Addr) {
	for _, n := range networks {
		network, err := netip.ParsePrefix(n.String())
		if err != nil || !network.Addr().Is4() || network.Bits() > 30 { // two hosts of a point-to-point link have both
			continue
		}
		first := network.Masked().Addr()
		last := first.As4()
		for bit := network.Bits(); bit < 32; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		all = append(all, first, netip.AddrFrom4(last))
	}
	return all
}

// target returns the address that a node's row names, if something may be sent there. Whatever can write the table may
// have put it there. Beside broadcasts, which are addresses of all hosts of a network here, the addresses of all hosts
// of all networks are known.
func target(address string, sameHost bool, broadcasts []netip.Addr) (netip.AddrPort, bool) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || ap.Port() == 0 {
		return ap, false
	}
	ip := ap.Addr().Unmap()
	isOfAll := slices.Contains(broadcasts, ip) || ip.Is4() && (ip.As4()[0] == 0 || ip.As4()[0] >= reserved)
	if ip.Zone() != "" || isOfAll || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return ap, false
	}
	return netip.AddrPortFrom(ip, ap.Port()), !ip.IsLoopback() || sameHost
}
