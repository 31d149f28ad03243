package webhook

import "net/netip"

// notPublic lists what is not somebody else's machine on the public internet, after the special-purpose registries of
// IANA. Of IPv6 only 2000::/3 is in public use; the rest (loopback, mapped and NAT64 forms of IPv4, unique local,
// link-local, site-local, multicast) is denied as a whole, so that a range put into use tomorrow is not forgotten.
var notPublic = prefixes(
	"0.0.0.0/8",       // this network; many systems connect to themselves
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT; metadata services of some clouds
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local; metadata services of most clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments; metadata services of some clouds
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast

	"::/3",          // unspecified, loopback, v4-compatible, v4-mapped, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard
	"2001::/23",     // protocol assignments: Teredo, benchmarking, ORCHID
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4
	"3fff::/20",     // documentation
	"4000::/2",
	"8000::/1", // with unique local fc00::/7, link-local fe80::/10, site-local fec0::/10, multicast ff00::/8
)

// loopback is what a server on a loopback address may call beside the public addresses.
var loopback = prefixes("127.0.0.0/8", "::1/128")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range list {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// canonical makes one spelling of an address: a v4-mapped one is the IPv4 address that would be dialled, and a zone
// would keep a prefix from containing it.
func canonical(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
