//go:build !race && linux

package door

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCommandBringsItsZones(t *testing.T) {
	t.Parallel()
	c := image(t, true)
	c.env["DELAYTASK_MIGRATE"] = "true"
	run := func(args ...string) (code int, said string) {
		p := c.start(t, append(c.entrypoint, args...)...)
		return p.End(), p.Out.String() + p.Err.String()
	}
	code, said := run("schedule", "create", "daily", "30 2 * * *", "--zone", "Europe/Berlin", "--tag", "report",
		"--dsn", "sqlite:tasks.db")
	if code != 0 || !strings.Contains(said, " CET ") && !strings.Contains(said, " CEST ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	code, said = run("schedule", "preview", "@daily", "--zone", "Asia/Beijing")
	if code == 0 || !strings.Contains(said, "did you mean Asia/Shanghai?") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestAProgramWithoutZoneDataIsToldWhereItIs(t *testing.T) {
	t.Parallel()
	c := image(t, true)
	install(t, "./test/door/testdata/zoned", filepath.Join(c.root, "zoned"))
	p := c.start(t, "/zoned")
	code := p.End()
	if said := p.Out.String() + p.Err.String(); code == 0 || !strings.Contains(said, `import _ "time/tzdata"`) ||
		strings.Contains(said, "unknown") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
