package documents

import (
	"encoding/xml"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// The picture is drawn by hand: a line that the demo prints otherwise is changed in it.
func TestThePictureShowsWhatTheDemoPrints(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 8 seconds")
	}
	t.Parallel()
	out, err := exec.Command(servertest.Build(t, "./cmd/delaytask"), "demo").Output()
	servertest.OK(t, err)
	printed := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range printed {
		// The folder of the database has a name of this machine.
		if utf8.RuneCountInString(line) > 100 && !strings.Contains(line, "sqlite:") {
			t.Errorf("more than 100 columns: %s", line)
		}
	}

	text := read(t, root+"/docs/images/demo.svg")
	var picture struct {
		Lines []struct {
			Opacity string   `xml:"opacity,attr"`
			Words   []string `xml:"tspan"`
		} `xml:"svg>g>text"`
	}
	servertest.OK(t, xml.Unmarshal([]byte(text), &picture))
	var shown []string
	for _, line := range picture.Lines {
		if line.Opacity == "" {
			shown = append(shown, strings.Join(line.Words, " "))
		}
	}
	want, got := masked(append(printed, "$ delaytask demo")), masked(shown)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the picture lacks %q", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("the demo does not print %q", line)
		}
	}
	if len(got) != len(want) || len(text) > 60<<10 {
		t.Errorf("the picture has %d lines, want %d; and %d bytes", len(got), len(want), len(text))
	}
}

// masked returns the lines without what another run says otherwise: numbers, times, folders, and the order of tasks.
func masked(lines []string) (all []string) {
	varies := regexp.MustCompile(`\s+|sqlite:\S+|\d+`)
	for _, line := range lines {
		if line = varies.ReplaceAllString(line, ""); line != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func TestThePictureOfATasksLifeNamesEachStatus(t *testing.T) {
	t.Parallel()
	var picture struct {
		Texts []string `xml:"text"`
	}
	servertest.OK(t, xml.Unmarshal([]byte(read(t, root+"/docs/images/life.svg")), &picture))
	for _, status := range []delaytask.Status{delaytask.Pending, delaytask.Executing, delaytask.Completed,
		delaytask.Failed, delaytask.Cancelled} {
		if !slices.Contains(picture.Texts, string(status)) {
			t.Errorf("it lacks %s in %q", status, picture.Texts)
		}
	}
}

func TestThePicturesOfTheDashboardAreSmall(t *testing.T) {
	t.Parallel()
	for _, theme := range []string{"light", "dark"} {
		picture := read(t, root+"/docs/images/dashboard-"+theme+".png")
		if !strings.HasPrefix(picture, "\x89PNG") || len(picture) > 150<<10 {
			t.Errorf("%s: no PNG of at most 150 KiB, but of %d bytes: make pictures", theme, len(picture))
		}
	}
}
