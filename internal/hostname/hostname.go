// Package hostname checks where a URL leads, as far as that needs no resolver.
package hostname

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Valid reports whether a URL's host is an address without a zone, or at most 253 of the characters that names in DNS
// have. The resolver decides what a name means.
func Valid(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	return 0 < len(host) && len(host) <= 253 && strings.Trim(host, characters) == ""
}

// Port returns the port of a URL of http or https, and 0 where it is not from 1 to 65535.
func Port(u *url.URL) uint16 {
	switch {
	case u.Port() == "" && u.Scheme == "http":
		return 80
	case u.Port() == "":
		return 443
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}
