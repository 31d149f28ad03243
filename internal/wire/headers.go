package wire

import (
	"maps"

	"github.com/delaytask/delaytask"
)

// Headers leaves out the header of the app, which has a field of its own.
func Headers(stored map[string]string) map[string]string {
	if _, has := stored[delaytask.AppHeader]; !has {
		return stored
	}
	rest := maps.Clone(stored)
	delete(rest, delaytask.AppHeader)
	return rest
}

// withApp undoes Headers.
func withApp(headers map[string]string, app string) map[string]string {
	if app == "" {
		return headers
	}
	all := map[string]string{delaytask.AppHeader: app}
	maps.Copy(all, headers)
	return all
}
