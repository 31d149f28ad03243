package main

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestTheDemoServesADashboard starts the demo as a person does, looks at its pages, and ends it by Ctrl-C.
func TestTheDemoServesADashboard(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	demo := servertest.Self(t, []string{"TMPDIR=" + folder}, "demo", "--ui")
	url := demo.Says(`^http.*`)
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

	demo.Signal(os.Interrupt)
	demo.EndsWell()
	if said := demo.Err.String(); said != "" {
		t.Errorf("it said %s", said)
	}
	left, err := os.ReadDir(folder)
	servertest.OK(t, err)
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
