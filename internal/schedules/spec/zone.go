package spec

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/request"
)

// ZoneError says why a name is no zone of the zone data of this machine. Another machine may know it.
type ZoneError struct {
	Name   string
	Near   []string // zones that may be meant, if any
	Reason ZoneReason
}

// ZoneReason is why a zone is unknown.
type ZoneReason int

const (
	NoSuchZone   ZoneReason = iota
	Abbreviation            // such as PST
	Offset                  // such as UTC+8
	OldZoneData             // the zone is younger than the zone data
	NoZoneData              // no zone can be read
)

func (e *ZoneError) Error() string {
	name := fmt.Sprintf("%q", e.Name)
	near := "name a zone of the IANA database such as Europe/Berlin"
	if len(e.Near) > 0 {
		near = "did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	switch e.Reason {
	case NoZoneData:
		return name + ` cannot be read, because this machine has no time zone data: install tzdata, or ` +
			`import _ "time/tzdata" in the program`
	case OldZoneData:
		return name + ` is not in the time zone data of this machine, which is older than the zone: update tzdata`
	case Abbreviation:
		return "unknown time zone " + name + ": an abbreviation names several zones, and no change of summer time; " +
			near
	case Offset:
		return "unknown time zone " + name + ": an offset names no change of summer time; " + near
	default:
		return "unknown time zone " + name + "; " + near
	}
}

// machineZone matches files of the zone data that are no zones of the IANA database. Two of them are settings of the
// machine, and files of two folders may count leap seconds, which Go takes for a wrong time.
var machineZone = regexp.MustCompile(`^(?i:local|localtime|posixrules|(posix|right)/.*)$`)

const longestZone = 64

// LoadZone returns the zone of a name of the IANA database, and UTC for "". It never takes the zone of the machine: two
// machines would disagree. The error is a *[delaytask.SpecError] or a *[ZoneError].
func LoadZone(name string) (*time.Location, error) {
	if len(name) > longestZone {
		return nil, &wrong{Reason: fmt.Sprintf("the name of the zone is longer than %d bytes", longestZone)}
	}
	if machineZone.MatchString(name) {
		return nil, &wrong{Reason: fmt.Sprintf("%q depends on the machine: name a zone such as Europe/Berlin", name)}
	}
	listed := slices.Contains(zones, name)
	zone, err := time.LoadLocation(name)
	// Some file systems find a name in any case, which other machines do not know.
	inAnyCase := slices.ContainsFunc(zones, func(z string) bool { return strings.EqualFold(z, name) })
	if err == nil && (listed || !inAnyCase) {
		return zone, nil
	}
	if _, err := time.LoadLocation("America/New_York"); err != nil {
		return nil, &ZoneError{Name: name, Reason: NoZoneData}
	}
	if listed {
		return nil, &ZoneError{Name: name, Reason: OldZoneData}
	}
	return nil, unknownZone(name)
}

// zones are UTC and the names of zone.tab, the table of the IANA database that leaves out former names.
var zones = strings.Fields(zoneText)

//go:embed zones.txt
var zoneText string

var (
	offset       = regexp.MustCompile(`^(?i:UTC|GMT)?[+-][0-9:]+$`)
	abbreviation = regexp.MustCompile(`^[A-Z]{2,5}$`)
)

// unknownZone finds what may be meant by a name: the same place elsewhere, a place without a zone of its own, or a
// misspelling.
func unknownZone(name string) *ZoneError {
	e := &ZoneError{Name: name}
	if offset.MatchString(name) {
		e.Reason = Offset
		return e
	}
	place := placeOf(name)
	for _, z := range zones {
		if placeOf(z) == place {
			e.Near = append(e.Near, z)
		}
	}
	if len(e.Near) > 0 {
		return e
	}
	if e.Near = strings.Fields(places[place]); len(e.Near) > 0 {
		return e
	}
	if e.Near = strings.Fields(abbreviated[place]); len(e.Near) > 0 || abbreviation.MatchString(name) {
		e.Reason = Abbreviation
		return e
	}
	e.Near = misspelt(name)
	return e
}

// placeOf returns the last part of a name, without what people write differently.
func placeOf(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(name[strings.LastIndex(name, "/")+1:]))
}

// misspelt returns the zone that the name differs from by few letters, with the area or without.
func misspelt(name string) []string {
	name = strings.ToLower(name)
	known := map[string]string{}
	var words []string
	for _, z := range zones {
		for _, word := range []string{strings.ToLower(z), placeOf(z)} {
			known[word] = z
			words = append(words, word)
		}
	}
	if near := request.Nearest(words, name, len(name)/4); near != "" {
		return []string{known[near]}
	}
	return nil
}

// abbreviated has zones of an abbreviation. Most name others, too.
var abbreviated = map[string]string{
	"pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles",
	"mdt": "America/Denver", "cst": "America/Chicago Asia/Shanghai", "cdt": "America/Chicago",
	"edt": "America/New_York", "et": "America/New_York", "akst": "America/Anchorage", "akdt": "America/Anchorage",
	"ast": "America/Halifax Asia/Riyadh", "adt": "America/Halifax", "brt": "America/Sao_Paulo",
	"bst": "Europe/London Asia/Dhaka", "ist": "Asia/Kolkata Europe/Dublin Asia/Jerusalem", "west": "Europe/Lisbon",
	"cest": "Europe/Berlin Europe/Paris", "eest": "Europe/Athens Europe/Kyiv", "msk": "Europe/Moscow",
	"sast": "Africa/Johannesburg", "wat": "Africa/Lagos", "eat": "Africa/Nairobi", "cat": "Africa/Maputo",
	"gst": "Asia/Dubai", "pkt": "Asia/Karachi", "ict": "Asia/Bangkok", "wib": "Asia/Jakarta", "sgt": "Asia/Singapore",
	"hkt": "Asia/Hong_Kong", "jst": "Asia/Tokyo", "kst": "Asia/Seoul", "awst": "Australia/Perth",
	"acst": "Australia/Adelaide Australia/Darwin", "aest": "Australia/Sydney Australia/Brisbane",
	"aedt": "Australia/Sydney", "nzst": "Pacific/Auckland", "nzdt": "Pacific/Auckland",
}

// places has the zones of places that no zone is named after.
var places = map[string]string{
	"beijing": "Asia/Shanghai", "peking": "Asia/Shanghai", "shenzhen": "Asia/Shanghai", "guangzhou": "Asia/Shanghai",
	"hangzhou": "Asia/Shanghai", "chengdu": "Asia/Shanghai", "china": "Asia/Shanghai", "osaka": "Asia/Tokyo",
	"delhi": "Asia/Kolkata", "new_delhi": "Asia/Kolkata", "mumbai": "Asia/Kolkata", "bangalore": "Asia/Kolkata",
	"bengaluru": "Asia/Kolkata", "chennai": "Asia/Kolkata", "hanoi": "Asia/Ho_Chi_Minh", "abu_dhabi": "Asia/Dubai",
	"islamabad": "Asia/Karachi", "ankara": "Europe/Istanbul", "munich": "Europe/Berlin", "hamburg": "Europe/Berlin",
	"frankfurt": "Europe/Berlin", "barcelona": "Europe/Madrid", "milan": "Europe/Rome", "geneva": "Europe/Zurich",
	"edinburgh": "Europe/London", "saint_petersburg": "Europe/Moscow", "san_francisco": "America/Los_Angeles",
	"seattle": "America/Los_Angeles", "dallas": "America/Chicago", "houston": "America/Chicago",
	"austin": "America/Chicago", "washington": "America/New_York", "boston": "America/New_York",
	"atlanta": "America/New_York", "miami": "America/New_York", "ottawa": "America/Toronto",
	"rio_de_janeiro": "America/Sao_Paulo", "brasilia": "America/Sao_Paulo", "wellington": "Pacific/Auckland",
}
