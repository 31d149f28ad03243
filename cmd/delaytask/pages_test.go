package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

var (
	shownCommand = regexp.MustCompile(`["<>]delaytask ([a-z][^<"]*)`)
	filledIn     = regexp.MustCompile(`\{\{.*?\}\}|NAME|TAG`)
)

// The commands that pages of the dashboard show are ones that this program takes.
func TestCommandsOfPagesAreTaken(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../dashboard/templates/*.html")
	servertest.OK(t, err)
	s := newShell(t)
	s.interactive, s.stdin = true, "no\n"
	id, ran := s.save("order.close", "--delay", "1h"), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		servertest.OK(t, err)
		for _, shown := range shownCommand.FindAllStringSubmatch(string(text), -1) {
			command, _, piped := strings.Cut(shown[1], "|")
			for name, moment := range map[string]string{
				"--tick …": "--tick 2027-01-31T08:30:00Z", "--from …": "--from 2027-01-31T08:30:00Z",
				"--to …": "--to 2027-02-01T08:30:00Z", "--reason …": "--reason repair", "'*'": "*",
			} {
				command = strings.ReplaceAll(command, name, moment)
			}
			command = filledIn.ReplaceAllString(command, id)
			if strings.HasSuffix(command, " ") && !piped { // of print, whose last argument follows
				command += id
			}
			if r := s.run(strings.Fields(command)...); r.code == exitWrongUse {
				t.Errorf("%s shows delaytask %s: %s", filepath.Base(page), command, r.stderr)
			}
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("%d commands were found", ran)
	}
}
