package sqlstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The products that are known. Others speak the protocol of MySQL, too.
const (
	aMySQL   = "MySQL"
	aMariaDB = "MariaDB"
	aTiDB    = "TiDB"
	aVitess  = "Vitess"
)

// version is the product and version of a server.
type version struct {
	name         string // one of the known ones; "": another
	major, minor int
}

var versionNumbers = regexp.MustCompile(`(\d+)\.(\d+)`)

// builtVitess begins the part of vtgate's version_comment that tells from which source it was built. VERSION() can be
// set to any text there, as to the version of a MySQL.
const builtVitess = "(Git revision "

// parseVersion reads the results of VERSION(), like 9.7.4-2, 10.11.19-MariaDB-0+deb12u1, 5.5.5-10.6.2-MariaDB,
// 8.0.11-TiDB-v8.5.0 or 8.4.6-Vitess, and of @@version_comment, which may be "".
func parseVersion(s, comment string) version {
	v := version{name: aMySQL}
	switch {
	case strings.Contains(s, aMariaDB):
		v.name = aMariaDB
		s = strings.TrimPrefix(s, "5.5.5-") // a prefix for old replicas
	case strings.Contains(s, aTiDB):
		v.name = aTiDB
		_, s, _ = strings.Cut(s, "TiDB-")
	case strings.Contains(comment, aTiDB):
		v.name = aTiDB
	case strings.Contains(s, aVitess), strings.Contains(comment, builtVitess):
		v.name = aVitess
	}
	if m := versionNumbers.FindStringSubmatch(s); m != nil {
		v.major, _ = strconv.Atoi(m[1]) // digits, by the expression
		v.minor, _ = strconv.Atoi(m[2])
	}
	return v
}

func (v version) String() string {
	switch v.name {
	case "":
		return fmt.Sprintf("a product that speaks the protocol of MySQL %d.%d", v.major, v.minor)
	case aVitess:
		return fmt.Sprintf("Vitess that speaks the protocol of MySQL %d.%d", v.major, v.minor)
	default:
		return fmt.Sprintf("%s %d.%d", v.name, v.major, v.minor)
	}
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// supported reports whether the server has expressions as defaults, and generated columns that can be unique.
func (v version) supported() bool {
	switch v.name {
	case aMariaDB:
		return v.atLeast(10, 6)
	case aTiDB:
		return true
	default:
		return v.atLeast(8, 0)
	}
}

// skipsLocked reports whether the server obeys SKIP LOCKED. TiDB parses it and takes no lock.
func (v version) skipsLocked() bool { return v.name != aTiDB && v.supported() }
