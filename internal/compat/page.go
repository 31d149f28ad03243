package compat

import (
	"net/http"
	"strings"

	"github.com/delaytask/delaytask/internal/access"
)

// Any web page can make a browser send a GET, and here GETs take jobs and complete them.

// clientHeader is a header that no web page can add: the browser would ask this server for permission first.
const clientHeader = "Delaytask-Client"

// crossOrigin reports whether the browser says that a web page of another origin asks. It judges every request as one that changes
// something.
func (h *Handler) crossOrigin(r *http.Request) bool {
	unsafe := *r
	unsafe.Method = http.MethodPost
	return h.origin.Check(&unsafe) != nil
}

// checkGet refuses a GET that a web page may have sent although its browser says nothing.
func (h *Handler) checkGet(r *http.Request, topic string) error {
	switch {
	case h.otherNames && !access.Match(h.getTopics, topic):
		return &refusal{http.StatusForbidden, "GET is off for this topic: this server is called by other names than loopback, " +
			"where any web page can send a GET. Use POST /v1/tags/{tag}/pop, or let the operator add the topic to server.get_topics"}
	case r.Header.Get(clientHeader) != "":
		return nil
	case h.otherNames && access.From(r.Context()).Name() == "", silentBrowser(r):
		return &refusal{http.StatusForbidden, "a web page may have sent this GET: send the header " + clientHeader + ": 1 with it, " +
			"which no web page can add"}
	}
	return nil
}

// silentBrowser reports whether a browser sends the request and does not say for which page. Browsers are silent over plain HTTP
// unless they call a loopback name. Behind a proxy the token need not be the client's, nor the name the one that it called.
func silentBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") && r.Header.Get("Sec-Fetch-Site") == ""
}
