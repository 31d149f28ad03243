package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// environment reads variables. An empty one counts as unset.
type environment struct {
	get func(name string) string
}

// name is the variable of an exporter's setting: the one for traces wins over the one for all signals.
func (e environment) name(setting string) string {
	if own := "OTEL_EXPORTER_OTLP_TRACES_" + setting; e.get(own) != "" {
		return own
	}
	return "OTEL_EXPORTER_OTLP_" + setting
}

func (e environment) exporter(setting string) (name, value string) {
	name = e.name(setting)
	return name, e.get(name)
}

// endpoint is where spans are posted to: the variable for traces contains it, the one for all signals its prefix. A
// user in it becomes a header, so that a printed URL never contains the password.
func (e environment) endpoint(header http.Header, errs *[]error) *url.URL {
	name, value := e.exporter("ENDPOINT")
	if value == "" {
		value = defaultEndpoint
	}
	u, err := url.Parse(value)
	// The parser's error quotes the URL, so it is not passed on.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		*errs = append(*errs, fmt.Errorf("%s must be the URL of a collector, http://HOST:PORT or https://HOST:PORT; "+
			"OTLP over HTTP has port 4318 by default", name))
		return nil
	}
	if u.Path == "" {
		u.Path = "/" // a path that is joined to none does not begin with one
	}
	if !strings.Contains(name, "_TRACES_") {
		u = u.JoinPath("v1", "traces")
	}
	if user := u.User; user != nil {
		password, _ := user.Password()
		if header.Get("Authorization") == "" {
			header.Set("Authorization", "Basic "+
				base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
		}
		u.User = nil
	}
	return u
}

// header reads name=value pairs between commas, the values percent-encoded. Errors name a pair by its position alone:
// values are secrets, and in a malformed pair any part may be the value.
func (e environment) header(errs *[]error) http.Header {
	header := http.Header{}
	name, value := e.exporter("HEADERS")
	for i, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, text, paired := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if key = strings.TrimSpace(key); !paired || err != nil || !isToken(key) || !isPrintable(text) {
			*errs = append(*errs, fmt.Errorf("%s: pair %d is not name=value, with a percent-encoded value", name, i+1))
			continue
		}
		header.Set(key, text)
	}
	return header
}

func isToken(name string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(marks, r)
	})
}

func isPrintable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// number reads a positive one.
func (e environment) number(name string, otherwise int, errs *[]error) int {
	value := e.get(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > math.MaxInt32 {
		*errs = append(*errs, fmt.Errorf("%s is %.80q: it must be a whole number above 0", name, value))
		return otherwise
	}
	return n
}

func (e environment) compressed(errs *[]error) bool {
	name, value := e.exporter("COMPRESSION")
	if value != "" && value != "gzip" && value != "none" {
		*errs = append(*errs, fmt.Errorf("%s is %.80q: it must be gzip or none", name, value))
	}
	return value == "gzip"
}

func (e environment) checkProtocol(errs *[]error) {
	if name, value := e.exporter("PROTOCOL"); value != "" && value != "http/protobuf" {
		*errs = append(*errs, fmt.Errorf("%s is %.80q: spans are sent by http/protobuf alone; set it to that, "+
			"and the endpoint to the "+
			"port where the collector takes OTLP over HTTP, 4318 by default", name, value))
	}
}

// samplers are those that the SDK knows. It would replace another one by its default.
var samplers = []string{
	"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio",
}

func (e environment) checkSampler(errs *[]error) {
	sampler, share := strings.ToLower(e.get("OTEL_TRACES_SAMPLER")), e.get("OTEL_TRACES_SAMPLER_ARG")
	if sampler != "" && !slices.Contains(samplers, sampler) {
		*errs = append(*errs, fmt.Errorf("OTEL_TRACES_SAMPLER is %.80q: it must be one of %s", sampler,
			strings.Join(samplers, ", ")))
	}
	if !strings.HasSuffix(sampler, "traceidratio") || share == "" {
		return
	}
	if n, err := strconv.ParseFloat(share, 64); err != nil || !(n >= 0 && n <= 1) {
		*errs = append(*errs, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %.80q: it must be a share from 0 to 1", share))
	}
}

// certificates returns nil where no file is named.
func (e environment) certificates(errs *[]error) *tls.Config {
	roots, rootFile := e.exporter("CERTIFICATE")
	own, ownFile := e.exporter("CLIENT_CERTIFICATE")
	key, keyFile := e.exporter("CLIENT_KEY")
	if rootFile == "" && ownFile == "" && keyFile == "" {
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if rootFile != "" {
		pem, err := os.ReadFile(rootFile)
		cfg.RootCAs = x509.NewCertPool()
		switch {
		case err != nil:
			*errs = append(*errs, fmt.Errorf("%s: %w", roots, err))
		case !cfg.RootCAs.AppendCertsFromPEM(pem):
			*errs = append(*errs, fmt.Errorf("%s: %s holds no certificate in PEM", roots, rootFile))
		}
	}
	if ownFile != "" || keyFile != "" {
		certificate, err := tls.LoadX509KeyPair(ownFile, keyFile)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("%s and %s belong together: %w", own, key, err))
		}
		cfg.Certificates = []tls.Certificate{certificate}
	}
	return cfg
}
