package golden

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Near is [Check] for numbers that may be off by a part of what the file has. A line is a name, a colon and a number.
// Near shows every one that has moved. It shows other lines of the file, and does not compare them.
func Near(t *testing.T, file, got string, part float64) {
	t.Helper()
	if os.Getenv("DELAYTASK_UPDATE") == "1" {
		Check(t, file, got)
		return
	}
	held, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: DELAYTASK_UPDATE=1 writes the file", err)
	}
	if moved := moves(string(held), got, part); moved != "" {
		t.Errorf("%s does not hold: DELAYTASK_UPDATE=1 writes it anew\n%s", file, moved)
	}
}

func moves(held, got string, part float64) (moved string) {
	was, is := map[string]float64{}, map[string]float64{}
	others := numbers(held, was) + numbers(got, is)
	for line := range strings.Lines(held + got) {
		name, _, _ := strings.Cut(line, ": ")
		if before, now := was[name], is[name]; math.Abs(now-before) > part*before {
			moved += fmt.Sprintf("%s: from %v to %v (%+.1f %%)\n", name, before, now, 100*(now/before-1))
		}
		delete(was, name) // got repeats the line
		delete(is, name)
	}
	if moved != "" {
		moved += others
	}
	return moved
}

// numbers reads lines into a map, and returns those without a number.
func numbers(text string, values map[string]float64) (others string) {
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if value, err := strconv.ParseFloat(number, 64); err == nil {
			values[name] = value
		} else {
			others += line
		}
	}
	return others
}
