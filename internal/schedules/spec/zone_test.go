package spec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

func TestUnknownZonesNameNearOnes(t *testing.T) {
	for name, want := range map[string]string{
		"Asia/Beijing":     "Asia/Shanghai",
		"beijing":          "Asia/Shanghai",
		"Europe/Shanghai":  "Asia/Shanghai",
		"Berlin":           "Europe/Berlin",
		"europe/berlin":    "Europe/Berlin",
		"AMERICA/NEW YORK": "America/New_York",
		"Europe/Bärlin":    "Europe/Berlin",
		"Amerika/New_York": "America/New_York",
		"Shangai":          "Asia/Shanghai",
		"utc":              "UTC",
		"Mars/Olympus":     "",
		"":                 "",
		"UTC+8":            "",
		"PST":              "America/Los_Angeles",
		"cst":              "America/Chicago Asia/Shanghai",
		"XYZ":              "",
	} {
		e := unknownZone(name)
		if got := strings.Join(e.Near, " "); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		short := name == "PST" || name == "cst" || name == "XYZ"
		if says := strings.Contains(e.Error(), "an abbreviation names several zones"); says != short {
			t.Errorf("%q: %v", name, e)
		}
		if !strings.Contains(e.Error(), "such as Europe/Berlin") && want == "" {
			t.Errorf("%q: %v", name, e)
		}
	}
	if e := unknownZone("+08:00"); e.Reason != Offset {
		t.Error(e)
	}
}

func TestEveryListedZoneLoads(t *testing.T) {
	for _, name := range zones {
		if _, err := LoadZone(name); err != nil {
			t.Error(err)
		}
	}
	for _, of := range []map[string]string{places, abbreviated} {
		for word, names := range of {
			for _, name := range strings.Fields(names) {
				if _, err := LoadZone(name); err != nil {
					t.Error(word, err)
				}
			}
			if _, err := time.LoadLocation(word); err == nil {
				t.Errorf("%s is a zone", word)
			}
		}
	}
}

func TestZonesOfTheMachineAreRefused(t *testing.T) {
	for _, zone := range []string{"Local", "LOCAL", "localtime", "posixrules", "right/Europe/Berlin",
		strings.Repeat("a", longestZone+1)} {
		_, err := Parse(delaytask.Spec{Lines: []string{"0 12 1 1 *"}, Zone: zone})
		if refused, ok := errors.AsType[*delaytask.SpecError](err); !ok || len(refused.Reason) > 100 {
			t.Errorf("%s: %v", zone, err)
		}
	}
	for _, zone := range []string{"../../etc/passwd", "/etc/localtime", "Europe", "tzdata.zi", "a\x00b", "\xff"} {
		_, err := Parse(delaytask.Spec{Lines: []string{"0 12 1 1 *"}, Zone: zone})
		if _, ok := errors.AsType[*ZoneError](err); !ok {
			t.Errorf("%q: %v", zone, err)
		}
	}
}
