package service

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true // so that no connection outlives its test
	goleak.VerifyTestMain(dbtest.WithServers(m))
}
