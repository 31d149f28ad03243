package api

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestAPreviewTakesAnyToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	const daily = `{"lines":["@daily"]}`
	tokens := map[access.Verb][]string{} // all are made before the server reads them
	for _, v := range access.Verbs {
		tokens[v] = s.token(string(v), "t", v)
	}
	for v, token := range tokens {
		got := ok[wire.Ticks](s, 200, "POST", previewPath, daily, token...)
		if len(got.Ticks) != previewed || got.Ticks[0].Time.Std().Before(s.scheduler.Now()) {
			t.Errorf("%s: %+v", v, got)
		}
	}
	s.Want(401, wire.CodeUnauthorized, "POST", previewPath, daily)
}

func TestAPreviewShowsWhatAClockChangeDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := s.Call("POST", previewPath, `{"lines":["30 2 * * *","!2027-03-29"],"zone":"Europe/Berlin","dst":"skip",`+
		`"after":"2027-03-27T12:00:00Z","end":1806460000,"count":1000}`)
	const want = `{"ticks":[` +
		`{"time":"2027-03-28T01:00:00.000Z","local":"2027-03-28T03:00:00+02:00","note":"02:30 does not exist",` +
		`"dropped":true},` +
		`{"time":"2027-03-30T00:30:00.000Z","local":"2027-03-30T02:30:00+02:00"},` +
		`{"time":"2027-03-31T00:30:00.000Z","local":"2027-03-31T02:30:00+02:00"}],"warnings":[]}`
	if got.Status != 200 || strings.TrimSpace(got.Text) != want {
		t.Errorf("%d %s", got.Status, got.Text)
	}
}

func TestAPreviewRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, b := range []bad{
		{400, wire.CodeInvalidSpec, around(`POST `+previewPath+` {"lines":`, `}`,
			`[]`, `null`, `[""]`, `["* * * *"]`, `["0 0 \u0000 * *"]`, `["0 0 30 2 *"]`, `["@every 1ns"]`,
			`["`+strings.Repeat("*", 16<<10)+`"]`, `["@at 0000-01-01T00:00"]`, `["@daily"],"zone":"Local"`,
			`["@daily"],"zone":"../../etc/passwd"`, `["@daily"],"zone":"`+strings.Repeat("x", 16<<10)+`"`,
			`["@daily"],"dst":"`+strings.Repeat("x", 16<<10)+`"`, `["@daily"],"start":"9999-12-31T23:59:59Z"`,
			`["@daily"],"end":"0001-01-01T00:00:00Z"`)},
		{400, wire.CodeInvalidOption, around(`POST `+previewPath+` {"lines":["@daily"],"count":`, `}`,
			`-1`, `1001`, `1000000000`)},
		{400, wire.CodeInvalidJSON, around(`POST `+previewPath+` {"lines":`, `}`,
			`"@daily"`, `[1]`, "[\"\xff\"]", `["@daily"],"count":1.5`, `["@daily"],"after":"tomorrow"`,
			`["@daily"],"after":null`, `["@daily"],"except":[]`, `["@daily"],"Zone":"UTC"`)},
	} {
		for _, request := range b.requests {
			_, body, _ := strings.Cut(request, previewPath+" ")
			p := s.Want(b.status, b.code, "POST", previewPath, body)
			if len(p.Detail) > 400 {
				t.Errorf("%.60s: the detail has %d bytes", body, len(p.Detail))
			}
		}
	}
	p := s.Want(400, wire.CodeInvalidSpec, "POST", previewPath, `{"lines":["@daily"],"zone":"Asia/Beijing"}`)
	if !strings.Contains(p.Detail, "did you mean Asia/Shanghai?") {
		t.Errorf("%+v", p)
	}
	p = s.Want(400, wire.CodeInvalidSpec, "POST", previewPath, `{"lines":["@daily","0 25 * * *"]}`)
	want := wire.Detail{Location: "body.lines[1]", Line: 2, Column: 3,
		Message: "hour: end of range (25) above maximum (23): 25"}
	if len(p.Errors) != 1 || p.Errors[0] != want {
		t.Errorf("%+v", p.Errors)
	}
}
