package sqlstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// version is the product and version of a server.
type version struct {
	name         string // "MySQL", "MariaDB" or "TiDB"
	major, minor int
}

var versionNumbers = regexp.MustCompile(`(\d+)\.(\d+)`)

// parseVersion reads the result of VERSION(), like 9.7.4-2, 10.11.19-MariaDB-0+deb12u1, 5.5.5-10.6.2-MariaDB or
// 8.0.11-TiDB-v8.5.0.
func parseVersion(s string) version {
	v := version{name: "MySQL"}
	switch {
	case strings.Contains(s, "MariaDB"):
		v.name = "MariaDB"
		s = strings.TrimPrefix(s, "5.5.5-") // a prefix for old replicas
	case strings.Contains(s, "TiDB"):
		v.name = "TiDB"
		_, s, _ = strings.Cut(s, "TiDB-")
	}
	if m := versionNumbers.FindStringSubmatch(s); m != nil {
		v.major, _ = strconv.Atoi(m[1]) // digits, by the expression
		v.minor, _ = strconv.Atoi(m[2])
	}
	return v
}

func (v version) String() string { return fmt.Sprintf("%s %d.%d", v.name, v.major, v.minor) }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// supported reports whether the server has expressions as defaults, and generated columns that can be unique.
func (v version) supported() bool {
	switch v.name {
	case "MariaDB":
		return v.atLeast(10, 6)
	case "TiDB":
		return true
	default:
		return v.atLeast(8, 0)
	}
}

// skipsLocked reports whether the server obeys SKIP LOCKED. TiDB parses it and takes no lock.
func (v version) skipsLocked() bool { return v.name != "TiDB" && v.supported() }
