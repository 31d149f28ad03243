package sealed

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// Nothing that was not sealed for the place is opened, whatever a row holds.
func FuzzOpen(f *testing.F) {
	b, err := New(secret)
	if err != nil {
		f.Fatal(err)
	}
	own, err := hex.DecodeString(before) // the same in every process of the fuzzer
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own, "shop", "http://a/")
	f.Add(own, "", "")
	f.Add(own[:13], "shop", "http://a/")
	f.Add([]byte{version}, "shop", "http://a/")
	f.Fuzz(func(t *testing.T, s []byte, app, address string) {
		got, err := b.Open(s, app, address)
		sealed := app == "shop" && address == "http://a/" && bytes.Equal(s, own)
		if sealed != (err == nil) || sealed != (string(got) == "whsec_c2VjcmV0") {
			t.Errorf("%x of %q at %q: %q, %v", s, app, address, got, err)
		}
	})
}
