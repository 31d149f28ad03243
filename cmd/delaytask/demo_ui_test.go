package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestTheDemoServesADashboard starts the demo as a person does, looks at its pages, and ends it by Ctrl-C.
func TestTheDemoServesADashboard(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	servertest.OK(t, err)
	folder := t.TempDir()
	cmd := exec.Command(program, "demo", "--ui")
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	servertest.OK(t, err)
	servertest.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test has failed before

	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http") {
			url = lines.Text()
		}
	}
	for path, wanted := range map[string][]string{
		"": {`class="findings"`, "video.encode</a>", "newsletter.send</a>", "payment.capture</a>", `class="plot"`,
			`class="bars`},
		"failures": {"card declined: no funds", "Gateway Timeout"},
		// The report runs at night.
		"schedules":                         {"report.nightly", "@every 5s"},
		"receivers":                         {"warehouse", "parcel.ship"},
		"tasks?status=completed&order=-due": {`class="row"`},
	} {
		response, err := http.Get(url + path)
		servertest.OK(t, err)
		page, err := io.ReadAll(response.Body)
		servertest.OK(t, err)
		servertest.OK(t, response.Body.Close())
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s has the status %d", path, response.StatusCode)
		}
		contains(t, string(page), wanted...)
	}
	http.DefaultClient.CloseIdleConnections()

	servertest.OK(t, cmd.Process.Signal(syscall.SIGINT))
	if _, err := io.Copy(io.Discard, out); err != nil { // before Wait, which closes it
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("it ended with %v and said %s", err, said.String())
	}
	left, err := os.ReadDir(folder)
	servertest.OK(t, err)
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
