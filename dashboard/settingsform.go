package dashboard

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// settings keeps what the form says, and goes back to its page.
func (d *dashboard) settings(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	v, known := d.who(w, r)
	if !known {
		return
	}
	if err := r.ParseForm(); err != nil {
		d.fail(w, v, errors.Join(errForm, err))
		return
	}
	s := v.settings
	if zone := r.PostForm.Get("zone"); zone != "" {
		if _, err := spec.LoadZone(zone); err != nil {
			d.fail(w, v, wrongZone(err))
			return
		}
	}
	s.take(r.PostForm)
	// Without a path the cookie belongs to the folder of this page, which is the dashboard.
	http.SetCookie(w, &http.Cookie{
		Name: settingsCookie, Value: s.values().Encode(), MaxAge: int((365 * 24 * time.Hour).Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	})
	browser.SeeOther(w, pathWithin(r.PostForm.Get("back")))
}

// wrongZone says why a zone is refused, and which one may be meant.
func wrongZone(err error) error {
	wrong := invalid{field: "zone", want: "want.zone", arg: "UTC, Asia/Shanghai, Europe/Berlin"}
	if e, unknown := errors.AsType[*spec.ZoneError](err); unknown {
		switch e.Reason {
		case spec.NoZoneData:
			wrong.want = "want.zone_data"
		case spec.Abbreviation:
			wrong.want = "want.zone_name"
		}
		if len(e.Near) > 0 {
			wrong.arg = strings.Join(e.Near, ", ")
		}
	}
	return wrong
}
