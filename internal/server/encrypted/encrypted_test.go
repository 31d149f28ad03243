package encrypted

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef"

// before is what the first version made of "whsec_c2VjcmV0", for the application shop at http://a/.
const before = "01681089bca2a81355b6dbfe5c807a9b5859d5bd8ae9f1fec35dae51ed655ab53d63320374a68c000e822f"

func box(t *testing.T, secret string) *Box {
	t.Helper()
	b, err := New(secret)
	servertest.OK(t, err)
	return b
}

func TestWhatIsEncryptedIsOpenedInItsPlaceAlone(t *testing.T) {
	t.Parallel()
	b := box(t, secret)
	for _, plaintext := range []string{"", "x", "whsec_c2VjcmV0", strings.Repeat("long", 1000)} {
		s, err := b.Seal([]byte(plaintext), "shop", "http://a/")
		servertest.OK(t, err)
		if len(s) != len(plaintext)+29 || len(plaintext) > 1 && bytes.Contains(s, []byte(plaintext)) {
			t.Errorf("%.20q is encrypted as %x", plaintext, s)
		}
		got, err := box(t, secret).Open(s, "shop", "http://a/") // another process
		if err != nil || string(got) != plaintext {
			t.Errorf("%.20q is opened as %.20q, %v", plaintext, got, err)
		}
		for _, place := range [][]string{nil, {"shop"}, {"shop", "http://b/"}, {"shophttp://a/"},
			{"shop", "http://a/", ""},
			{"shophttp", "://a/"}, {"http://a/", "shop"}} {
			refuses(t, b, s, place...)
		}
		refuses(t, box(t, secret+"x"), s, "shop", "http://a/")
	}
}

func TestEverySealIsAnother(t *testing.T) {
	t.Parallel()
	b := box(t, secret)
	seen := map[string]bool{}
	for range 1000 {
		s, err := b.Seal([]byte("same"), "place")
		if err != nil || seen[string(s[1:13])] {
			t.Fatalf("a nonce was used twice, or %v", err)
		}
		seen[string(s[1:13])] = true
	}
}

func TestADamagedSealIsNotOpened(t *testing.T) {
	t.Parallel()
	b := box(t, secret)
	s, err := b.Seal([]byte("secret"), "place")
	servertest.OK(t, err)
	for i := range s {
		for bit := range 8 {
			damaged := bytes.Clone(s)
			damaged[i] ^= 1 << bit
			refuses(t, b, damaged, "place")
		}
		refuses(t, b, s[:i], "place")
	}
	refuses(t, b, nil, "place")
	refuses(t, b, append(s, 0), "place")
}

func refuses(t *testing.T, b *Box, s []byte, place ...string) {
	t.Helper()
	got, err := b.Open(s, place...)
	if !errors.Is(err, ErrNotOpened) || got != nil || !strings.Contains(err.Error(), "DELAYTASK_SECRET") {
		t.Errorf("opened %x in %q as %q, %v", s, place, got, err)
	}
}

func TestASecretThatCannotServeIsRefused(t *testing.T) {
	t.Parallel()
	f := func(secret string, want error) {
		t.Helper()
		b, err := New(secret)
		if !errors.Is(err, want) || b != nil || !strings.Contains(err.Error(), "set it to at least 16 random bytes") {
			t.Errorf("%q: %v", secret, err)
		}
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	f("", ErrNoSecret)
	f("0123456789abcde", ErrShortSecret)

	var none *Box
	if _, err := none.Seal([]byte("x")); !errors.Is(err, ErrNoSecret) {
		t.Errorf("encrypted without a secret: %v", err)
	}
	if _, err := none.Open([]byte("x")); !errors.Is(err, ErrNoSecret) {
		t.Errorf("opened without a secret: %v", err)
	}
}

// All later releases must open what a release has encrypted.
func TestTheWayOfSealingStays(t *testing.T) {
	t.Parallel()
	s, err := hex.DecodeString(before)
	servertest.OK(t, err)
	got, err := box(t, secret).Open(s, "shop", "http://a/")
	if err != nil || string(got) != "whsec_c2VjcmV0" {
		t.Errorf("opened as %q, %v", got, err)
	}
}

// Only data that was encrypted for the place is opened, whatever a row contains.
func FuzzOpen(f *testing.F) {
	b, err := New(secret)
	servertest.OK(f, err)
	own, err := hex.DecodeString(before) // the same in every process of the fuzzer
	servertest.OK(f, err)
	f.Add(own, "shop", "http://a/")
	f.Add(own, "", "")
	f.Add(own[:13], "shop", "http://a/")
	f.Add([]byte{version}, "shop", "http://a/")
	f.Fuzz(func(t *testing.T, s []byte, app, address string) {
		got, err := b.Open(s, app, address)
		encrypted := app == "shop" && address == "http://a/" && bytes.Equal(s, own)
		if encrypted != (err == nil) || encrypted != (string(got) == "whsec_c2VjcmV0") {
			t.Errorf("%x of %q at %q: %q, %v", s, app, address, got, err)
		}
	})
}
