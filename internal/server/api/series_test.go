package api

import (
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestSeriesReadsItsTimes(t *testing.T) {
	s := newSite(t)
	for _, query := range []string{
		"", "since=30m", "since=1800s", "from=2026-01-01T00:00:00Z", "from=1767225600", "tag=a&since=30d",
	} {
		got := ok[wire.Series](s, 200, "GET", "/v1/series?"+query, "")
		if got.Points == nil || got.Marks == nil || got.SpanMS < 60_000 {
			t.Errorf("%s: %+v", query, got)
		}
	}
	for _, query := range []string{
		"since=soon", "since=0s", "since=-1h", "from=yesterday", "to=0", "since=1h&from=1767225600",
		"from=1767225600&to=1767225600",
	} {
		s.Want(400, wire.CodeInvalidOption, "GET", "/v1/series?"+query, "")
	}
	s.Want(400, wire.CodeInvalidTag, "GET", "/v1/series?tag=no+tag", "")
}
