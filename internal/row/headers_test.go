package row

import (
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
