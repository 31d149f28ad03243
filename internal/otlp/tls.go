package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

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
