package main

import (
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
)

func TestAPictureHasTheLinesOfTheCommandAndItsLastFrame(t *testing.T) {
	// It asks the terminal what it is, and so waits until its second line was seen.
	const script = `stty -echo
printf '\033[31mred\033[0m <a>  b\n\nworking\033[c'; read -d c _
printf '\r\033[Kdone\n'`
	lines, took, err := record([]string{"bash", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	p := picture{command: "say it", lines: lines, took: took, shown: 3}
	svg := p.svg()
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
		t.Errorf("it is no XML: %v", err)
	}
	for _, want := range []string{
		`<tspan x="0" class="red">red</tspan><tspan x="33.6">&lt;a&gt;</tspan><tspan x="75.6">b</tspan>`,
		`y="72" opacity="0"><tspan x="0">working</tspan>`, // overwritten after a moment
		`y="72"><tspan x="0">done</tspan>`,
		`transform="translate(0 -19)"`, // four rows, of which three are shown
		`to{transform:translateY(-19px)}`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("it lacks %s:\n%s", want, svg)
		}
	}
	for _, class := range regexp.MustCompile(`<text class="(f[-\d]+)"`).FindAllStringSubmatch(svg, -1) {
		if !strings.Contains(svg, "@keyframes "+class[1]+"{") {
			t.Errorf("nothing lets the lines of %s appear", class[1])
		}
	}
}

func TestACommandThatFailsMakesNoPicture(t *testing.T) {
	if _, _, err := record([]string{"false"}); err == nil {
		t.Error("no error")
	}
}
