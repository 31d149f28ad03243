package row

import (
	"encoding/json"
	"maps"
	"testing"
)

func TestHeadersThatAreNoStringsAreLeftOut(t *testing.T) {
	t.Parallel()
	f := func(column string, want map[string]string) {
		t.Helper()
		if got := DecodeHeaders([]byte(column)); !maps.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s decodes as %#v, want %#v", column, got, want)
		}
	}
	f(`{"a":"1","b":""}`, map[string]string{"a": "1", "b": ""})
	f(`{"a":"1","b":2,"c":null,"d":{"e":"f"}}`, map[string]string{"a": "1"})
	f(`{"b":2}`, nil)
	f(`{}`, nil)
	f(`[]`, nil)
	f(`null`, nil)
	f(`no JSON`, nil)
	f(``, nil)
}

func FuzzDecodeHeaders(f *testing.F) {
	for _, seed := range []string{
		`{"a":"1","b":2}`, `{"a":null,"":""}`, `{"a":"\ud800"}`, "{\"\xff\":\"\xff\"}", `[]`, `null`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, column []byte) {
		headers := DecodeHeaders(column)
		if headers == nil {
			return
		}
		stored, err := json.Marshal(headers)
		if again := DecodeHeaders(stored); err != nil || len(headers) == 0 || !maps.Equal(again, headers) {
			t.Fatalf("%q decodes as %q, which comes back as %q, %v", column, headers, again, err)
		}
	})
}
