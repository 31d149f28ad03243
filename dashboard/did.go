package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// didCookie tells the page that an action leads to that the action was done. The address says what; a link to the same
// address has no cookie, and says nothing.
const didCookie = "delaytask_did"

// didFor bounds how long the way to the page may take.
const didFor = time.Minute

// sayDid lets the page of the address, as a path from the dashboard with a query, say what was done.
func sayDid(w http.ResponseWriter, r *http.Request, to string) {
	http.SetCookie(w, &http.Cookie{
		Name: didCookie, Value: sumOf(to), Path: "/", MaxAge: int(didFor.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// hearDid returns what the address of the page says was done, if it was. It says so once.
func (v *view) hearDid(w http.ResponseWriter) url.Values {
	cookie, err := v.r.Cookie(didCookie)
	if err != nil || cookie.Value != sumOf(v.Path+"?"+v.r.URL.RawQuery) {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: didCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: v.r.TLS != nil})
	return v.r.URL.Query()
}

func sumOf(to string) string {
	sum := sha256.Sum256([]byte(strings.TrimLeft(to, "./")))
	return hex.EncodeToString(sum[:16])
}
