package dashboard

import (
	"net/http"
	"net/url"
	"time"

	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// settings are how a person likes to see the pages. A cookie keeps them, so a page is right before any script runs.
type settings struct {
	Lang  string // en or zh
	Theme string // light, dark, or auto as the system has it
	Zone  string // a name of the IANA database
	Fresh bool   // pages refresh themselves
	Keys  bool   // single keys do something

	zone *time.Location
}

const settingsCookie = "delaytask_view"

// settingsOf reads the cookie. A wrong value counts as missing.
func settingsOf(r *http.Request) settings {
	lang := browser.Language(r.Header.Get("Accept-Language"), "en", "zh")
	s := settings{Lang: lang, Theme: "auto", Zone: "UTC", Fresh: true, Keys: true}
	var kept url.Values
	if cookie, err := r.Cookie(settingsCookie); err == nil {
		kept, _ = url.ParseQuery(cookie.Value)
	}
	s.take(kept)
	return s
}

// take takes what is valid.
func (s *settings) take(from url.Values) {
	if lang := from.Get("lang"); languages[lang] != "" {
		s.Lang = lang
	}
	if theme := from.Get("theme"); theme == "light" || theme == "dark" || theme == "auto" {
		s.Theme = theme
	}
	if from.Has("fresh") {
		s.Fresh = from.Get("fresh") != "off"
	}
	if from.Has("keys") {
		s.Keys = from.Get("keys") != "off"
	}
	s.zone = time.UTC
	if name := from.Get("zone"); name != "" {
		if zone, err := spec.LoadZone(name); err == nil {
			s.Zone, s.zone = name, zone
		}
	}
}

// values is the other way round.
func (s *settings) values() url.Values {
	word := func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}
	return url.Values{
		"lang": {s.Lang}, "theme": {s.Theme}, "zone": {s.Zone}, "fresh": {word(s.Fresh)}, "keys": {word(s.Keys)},
	}
}

// languages are those that the texts exist in, by their own names.
var languages = map[string]string{"en": "English", "zh": "中文"}

// Languages lists the languages by their own names.
func (settings) Languages() map[string]string { return languages }

// Zones lists what is offered. Others may be typed.
func (settings) Zones() []string {
	return []string{"UTC", "Europe/London", "Europe/Berlin", "America/New_York", "America/Los_Angeles",
		"America/Sao_Paulo", "Asia/Shanghai", "Asia/Tokyo", "Asia/Kolkata", "Asia/Singapore", "Australia/Sydney"}
}
