package request

import (
	"sync"
	"time"
)

// zones keeps what was read: reading a zone takes longer than all else that is done with a row.
var zones sync.Map // *time.Location by name

// In returns a time of a schedule in its zone. It stays as it is for the name "", for a zone that this machine does not
// know, and where it is zero.
func In(t time.Time, name string) time.Time {
	if name == "" || t.IsZero() {
		return t
	}
	if zone, known := zones.Load(name); known {
		return t.In(zone.(*time.Location))
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return t
	}
	zones.Store(name, zone)
	return t.In(zone)
}
