package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildIsNamedByItsRevisionOrItsFile(t *testing.T) {
	t.Parallel()
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for settings, want := range map[string]string{
		"":                         "+build.sum",
		"vcs.revision=" + revision: "+0123456789ab",
		"vcs.revision=" + "12345":  "+12345",
		"vcs.modified=true":        "+build.sum",
		"vcs.revision=" + revision + " vcs.modified=false": "+0123456789ab",
		"vcs.revision=" + revision + " vcs.modified=true":  "+0123456789ab.modified.sum",
	} {
		var info debug.BuildInfo
		for setting := range strings.FieldsSeq(settings) {
			key, value, _ := strings.Cut(setting, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		if got := buildOf(&info, func() string { return "sum" }); got != want {
			t.Errorf("%q: %q, want %q", settings, got, want)
		}
	}
}

// Without one all of the file is read, which takes most of the time of a start.
func TestBuildIDIsInTheHeadOfAProgram(t *testing.T) {
	t.Parallel()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if !hasBuildID(program[:headSize]) {
		t.Error("the head of this program has no build ID")
	}
	if hasBuildID(make([]byte, headSize)) {
		t.Error("an empty head has a build ID")
	}
}

const tellsBuild = "DELAYTASK_TEST_TELLS_BUILD"

func TestTwoBuildsOfOneVersionDiffer(t *testing.T) {
	t.Parallel()
	if os.Getenv(tellsBuild) != "" {
		fmt.Println("build", build())
		return
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.exe")
	if err := os.WriteFile(other, append(program, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	builds := map[string]bool{}
	for _, path := range []string{own, other, own} {
		cmd := exec.CommandContext(t.Context(), path, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), tellsBuild+"=1")
		told, err := cmd.CombinedOutput()
		_, name, found := strings.Cut(string(told), "build ")
		name, _, _ = strings.Cut(name, "\n")
		if err != nil || !found || !strings.HasPrefix(name, Version+"+") || len(name) > 64 {
			t.Fatalf("%s: %v: %s", path, err, told)
		}
		builds[name] = true
	}
	if len(builds) != 2 {
		t.Errorf("two builds call themselves %v", builds)
	}
}
