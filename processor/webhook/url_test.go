package webhook

import (
	"errors"
	"strings"
	"testing"
)

func TestURLIsRefusedWithoutALookUp(t *testing.T) {
	t.Parallel()
	strict := newGuard(t, GuardConfig{})
	f := func(raw string, want error) {
		t.Helper()
		if err := strict.CheckURL(raw); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", raw, err, want)
		} else if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: the error shows it: %v", raw, err)
		}
	}
	f("https://hooks.example.com/a?b=c%20d", nil)
	f("https://xn--bcher-kva.example/", nil)
	f("https://h:8443", nil)
	f("https://h:", nil)
	f("HTTPS://H.EXAMPLE/", nil)
	f("https://[2606:4700::1111]/", nil)

	for _, raw := range []string{
		"", "canary", "/canary", "//h/", "file:///etc/canary", "gopher://h/canary", "ftp://h/", "javascript:canary",
		"https:canary", "https://", "https:///canary", "https://:443/", "https://user:canary@h/", "https://canary@h/",
		"https://h/#canary", "https://h/#", "https://h/a canary", " https://h/", "https://h/\n", "https://h /",
		"https://h\\@canary/", "https://h:0/", "https://h:65536/", "https://h:canary/",
		"https://h:99999999999999999999/", "https://p\u0430ypal.com/", "https://%D0%B0.com/", "https://h%00/",
		"https://[fe80::1%25eth0]/", "https://[::1/", "https://h,canary/", "https://*/",
		"https://" + strings.Repeat("a", 254) + "/",
		"https://h/" + strings.Repeat("a", maxURL),
	} {
		f(raw, ErrInvalidURL)
	}
	err := newGuard(t, GuardConfig{}).CheckURL("ftp://h/")
	if !strings.Contains(err.Error(), "https://, or with http://") {
		t.Errorf("the error of another scheme is %v", err)
	}
	for _, raw := range []string{
		"http://h/canary", "https://h:22/", "https://h:8080/", "https://127.0.0.1/", "https://[::1]/",
		"https://[::ffff:10.0.0.1]/",
		"https://169.254.169.254/latest/canary", "https://[fd00:ec2::254]/", "https://127.0.0.1./",
	} {
		f(raw, ErrBlockedURL)
	}
}

func TestURLMayUseWhatTheAllowListOpens(t *testing.T) {
	t.Parallel()
	f := func(cfg GuardConfig, raw string, want error) {
		t.Helper()
		if err := newGuard(t, cfg).CheckURL(raw); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", raw, err, want)
		}
	}
	f(GuardConfig{Allow: []string{"hooks.internal"}}, "http://HOOKS.internal.:9000/", nil)
	f(GuardConfig{Allow: []string{"hooks.internal"}}, "http://other.internal:9000/", ErrBlockedURL)
	f(GuardConfig{AllowLoopback: true}, "http://127.0.0.1:9000/", nil)
	f(GuardConfig{AllowLoopback: true}, "http://localhost:9000/", nil) // where the name leads is seen at the dial
	f(GuardConfig{AllowLoopback: true}, "http://10.0.0.1/", ErrBlockedURL)
	f(GuardConfig{AllowHTTP: true}, "http://h/", nil)
	f(GuardConfig{AllowHTTP: true}, "http://h:81/", ErrBlockedURL)
	f(GuardConfig{Ports: []uint16{4443}}, "https://h:4443/", nil)
	f(GuardConfig{Ports: []uint16{4443}}, "https://h/", ErrBlockedURL)
}
