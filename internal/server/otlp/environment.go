package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/hostname"
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

// endpoint is where spans are posted to: the variable for traces contains it, the one for all signals its prefix.
func (e environment) endpoint(errs *[]error) *url.URL {
	name, value := e.exporter("ENDPOINT")
	if value == "" {
		value = defaultEndpoint
	}
	u, err := url.Parse(value)
	// The parser's error quotes the URL, so it is not passed on.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !hostname.Valid(u.Hostname()) ||
		hostname.Port(u) == 0 {
		*errs = append(*errs, fmt.Errorf("%s must be the URL of a collector, http://HOST:PORT or https://HOST:PORT; "+
			"OTLP over HTTP has port 4318 by default", name))
		return nil
	}
	if u.User != nil || u.RawQuery != "" {
		*errs = append(*errs, fmt.Errorf("%s holds a user or a query, which the exporter does not send; headers go "+
			"into %s", name, e.name("HEADERS")))
		return nil
	}
	if u.Path == "" {
		u.Path = "/" // a path that is joined to none does not begin with one
	}
	if !strings.Contains(name, "_TRACES_") {
		u = u.JoinPath("v1", "traces")
	}
	return u
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

func (e environment) checkProtocol(errs *[]error) {
	if name, value := e.exporter("PROTOCOL"); value != "" && value != "http/protobuf" {
		*errs = append(*errs, fmt.Errorf("%s is %.80q: spans are sent by http/protobuf alone; set it to that, "+
			"and the endpoint to the port where the collector takes OTLP over HTTP, 4318 by default", name, value))
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
