package api

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask/internal/wire"
)

const (
	mediaJSON    = "application/json"
	mediaNDJSON  = "application/x-ndjson"
	mediaProblem = "application/problem+json"
	mediaBytes   = "application/octet-stream"
)

// mediaOf returns the media type of a body that is neither packed nor in another encoding than UTF-8.
func mediaOf(h http.Header) (string, *wire.Problem) {
	if packed := h.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return "", wrongMedia("the body is packed by Content-Encoding")
	}
	if len(h.Values("Content-Type")) != 1 {
		return "", wrongMedia("there is not just one Content-Type")
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return "", wrongMedia("the Content-Type cannot be read")
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return "", wrongMedia(fmt.Sprintf("the charset is %.40q", charset))
	}
	return media, nil
}

func wrongMedia(what string) *wire.Problem {
	return wire.NewProblem(http.StatusUnsupportedMediaType, wire.CodeUnsupportedMediaType,
		what+": send JSON in UTF-8 with the header Content-Type: application/json")
}
