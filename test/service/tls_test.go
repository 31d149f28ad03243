package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// certificate is self-signed: an authority, a server and a client in one.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	servertest.OK(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	servertest.OK(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	servertest.OK(t, err)
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		servertest.OK(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
	pair, err = tls.LoadX509KeyPair(certFile, keyFile)
	servertest.OK(t, err)
	return certFile, keyFile, pair
}

func TestTLSAndCertificatesOfClients(t *testing.T) {
	t.Parallel()
	cert, key, pair := certificate(t)
	_, _, foreign := certificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	get := func(url string, certificates ...tls.Certificate) (*http.Response, error) {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}, ForceAttemptHTTP2: true,
		}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport, Timeout: patience}).Get(url + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return res, err
	}
	oneSided := []string{"DELAYTASK_SERVER_TLS_CERT=" + cert, "DELAYTASK_SERVER_TLS_KEY=" + key}
	open := serve(t, dbtest.New(t, dbtest.SQLite), oneSided...)
	res, err := get(open.URL)
	if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("TLS: %+v, %v; want 200 by HTTP/2", res, err)
	}
	mutual := serve(t, dbtest.New(t, dbtest.SQLite), append(oneSided, "DELAYTASK_SERVER_TLS_CLIENT_CA="+cert)...)
	if res, err := get(mutual.URL, pair); err != nil || res.StatusCode != 200 {
		t.Errorf("a known client: %+v, %v", res, err)
	}
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "a foreign's": {foreign}} {
		if res, err := get(mutual.URL, certificates...); err == nil {
			t.Errorf("%s: %s, want a refusal", name, res.Status)
		}
	}
}
