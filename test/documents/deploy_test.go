package documents

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// The deploy files may set only settings: an unknown variable stops the start.
func TestDeployFilesSetWhatIsThere(t *testing.T) {
	t.Parallel()
	settings := regexp.MustCompile(`(DELAYTASK_[A-Z_]+)(?:=|: )("[^"]*"|\S+)`)
	for path, want := range map[string]int{"deploy/Dockerfile": 1, "deploy/Dockerfile.release": 1,
		"deploy/delaytask.service": 0, "docker-compose.yml": 5} {
		var environ []string
		for line := range strings.Lines(read(t, filepath.Join(root, path))) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, found := range settings.FindAllStringSubmatch(line, -1) {
				environ = append(environ, found[1]+"="+strings.Trim(found[2], `"`))
			}
		}
		if len(environ) != want {
			t.Errorf("%s sets %q, want %d variables", path, environ, want)
		}
		if _, err := config.Load(config.Source{Path: filepath.Join(root, "config.yaml"),
			Environ: environ}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestContainersAreHealthyWithoutRights(t *testing.T) {
	t.Parallel()
	movable := regexp.MustCompile(`ports:\[127\.0\.0\.1:\$\{DELAYTASK_(MYSQL_)?PORT:-\d+\}:\d+\]`)
	compose, err := yaml.Parser().Unmarshal([]byte(read(t, root+"/docker-compose.yml")))
	servertest.OK(t, err)
	for name, service := range compose["services"].(map[string]any) {
		said := fmt.Sprint(service)
		for _, want := range []string{"cap_drop:[ALL]", "read_only:true", "[no-new-privileges:true]",
			"healthcheck:map["} {
			if !strings.Contains(said, want) {
				t.Errorf("%s lacks %s: %s", name, want, said)
			}
		}
		if !movable.MatchString(said) {
			t.Errorf("%s has a port that no variable moves, or that others reach: %s", name, said)
		}
	}
	if image := read(t, root+"/deploy/Dockerfile"); !strings.Contains(image, ` CMD ["/delaytask", "health"]`) {
		t.Error("the image does not ask whether it is healthy")
	}
}

func TestDeployFilesFitTheProgram(t *testing.T) {
	t.Parallel()
	image, unit := read(t, root+"/deploy/Dockerfile"), read(t, root+"/deploy/delaytask.service")
	compose, mod := read(t, root+"/docker-compose.yml"), read(t, root+"/go.mod")
	one := func(text, pattern string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%s is there %d times", pattern, len(found))
		}
		return found[0][1]
	}
	if language, builder := one(mod, `^go (\d+\.\d+)`), one(image, `^FROM golang:(\S+) AS`); language != builder {
		t.Errorf("the image is built with Go %s, go.mod wants %s", builder, language)
	}
	for _, path := range []string{one(image, `go build .* \./(\S+)`), one(compose, `dockerfile: (\S+)`)} {
		if matches, _ := filepath.Glob(filepath.Join(root, path)); len(matches) == 0 {
			t.Errorf("%s is not there", path)
		}
	}
	if command := one(image, `^CMD \["(\w+)"\]`); command != "serve" ||
		!strings.Contains(one(unit, `^ExecStart=(.*)$`), " serve ") {
		t.Errorf("the image runs %q", command)
	}
	const requests = 15 * time.Second // that are in flight
	for manager, kills := range map[string]string{
		"systemd": one(unit, `^TimeoutStopSec=(\d+)$`), "compose": one(compose, `^    stop_grace_period: (\d+)s`),
		"docker": one(image, `docker stop --time (\d+)`),
	} {
		given, err := time.ParseDuration(kills + "s")
		if want := config.Default().StopGrace + requests; err != nil || given < want {
			t.Errorf("%s kills after %v, %v; a stop may take %v", manager, given, err, want)
		}
	}
}
