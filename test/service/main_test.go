// Package service tests `delaytask serve` as its users run it: processes of the built program, over HTTP.
package service

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// program is the built delaytask.
var program string

// built runs the tests with a built program.
type built struct{ tests goleak.TestingM }

func (b built) Run() int {
	dir, err := os.MkdirTemp("", "delaytask-service-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "delaytask")
	args := append([]string{"build", "-o", program}, buildFlags...)
	if out, err := exec.Command("go", append(args, "../../cmd/delaytask")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return b.tests.Run()
}

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true // no connection outlives its test
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil {      // servers are killed here on purpose
		panic(err)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(built{dbtest.WithServers(m)})
}
