package row

import "strings"

// TagKey names the unfinished task that carries a key, as the key is stored.
type TagKey struct{ Tag, Key string }

const (
	// GlobalKey begins the keys that share one namespace over all tags.
	GlobalKey = "s3:"
	// AppKey begins the keys that belong to an application, see [ScopedKey]. Callers can use neither beginning.
	AppKey = "delaytask-app:"
)

// Scope is what the key must be unique in, and so what rows are compared by: the tag is left out of a [GlobalKey].
func (k TagKey) Scope() TagKey {
	if strings.HasPrefix(k.Key, GlobalKey) {
		k.Tag = ""
	}
	return k
}

// ScopedKey is how a caller's key is stored: with the application that it belongs to, or as it is where that is "". No
// name of an application holds the character between the two, so no two pairs are stored alike.
func ScopedKey(app, key string) string {
	if app == "" || key == "" {
		return key
	}
	return AppKey + app + "|" + key
}

// OwnKey is the caller's key of a stored one. A key that was stored without the application of its task is shown as it
// is.
func OwnKey(app, stored string) string {
	if app == "" {
		return stored
	}
	return strings.TrimPrefix(stored, AppKey+app+"|")
}
