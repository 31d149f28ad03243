package service

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/delaytask/delaytask/internal/config"
)

// tlsOf returns nil where no certificate is named.
func tlsOf(c config.TLS) (*tls.Config, error) {
	if c.Cert == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("server.tls.cert and server.tls.key: %w", err)
	}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.ClientCA == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("server.tls.client_ca: %w", err)
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("server.tls.client_ca: %s holds no certificate in PEM", c.ClientCA)
	}
	return cfg, nil
}

func secured(l net.Listener, cfg *tls.Config) net.Listener { return tls.NewListener(l, cfg) }
