package main

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func printed(t *testing.T, s screen, cuts ...int) string {
	t.Helper()
	var out bytes.Buffer
	table := newTable(visible{&out}, s, "ID", "KEY", "STATUS").mayCut(cuts...)
	table.row("912989094369404870", "键-order-42-很长的键-of-a-customer", "completed")
	table.paint(2, green)
	table.row("1", "a\tb\x1b[31m", "")
	servertest.OK(t, table.flush())
	return out.String()
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	whole := printed(t, screen{}, 1)
	contains(t, whole, "键-order-42-很长的键-of-a-customer  completed", `a b\x1b[31m `, "  -\n")
	for width := 30; width < 90; width++ {
		out := printed(t, screen{width: width}, 1)
		for line := range strings.Lines(out) {
			if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("a line takes %d of %d columns: %s", w, width, line)
			}
		}
		contains(t, out, "912989094369404870", "completed") // only texts are cut
	}
	contains(t, printed(t, screen{width: 32}, 1), "KEY     键-", "STATUS  completed\n\nID      1\n")
}

func TestColoursAreTheTerminalsAlone(t *testing.T) {
	t.Parallel()
	contains(t, printed(t, screen{colour: true}), "\x1b[32mcompleted\x1b[0m", "\x1b[1mID\x1b[0m", `a b\x1b[31m`)
	if out := printed(t, screen{width: 80}); strings.Contains(out, "\x1b") {
		t.Errorf("a screen without colours gets %q", out)
	}
	for name, environ := range map[string][]string{"NO_COLOR": {"NO_COLOR=1"}, "dumb": {"TERM=dumb"}} {
		if a := (&app{environ: environ}); hasColour(a.getenv) {
			t.Errorf("%s: there are colours", name)
		}
	}
}

func TestTimesForPeopleAreLocal(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	servertest.OK(t, err)
	was := time.Local
	t.Cleanup(func() { time.Local = was })
	time.Local = shanghai
	var out bytes.Buffer
	for format, want := range map[string]string{
		"text": "time=2026-03-02T07:59:59.250+08:00", "json": `"next":"2026-03-01T23:59:59.25Z"`,
	} {
		out.Reset()
		at := time.Date(2026, 3, 1, 23, 59, 59, 250e6, time.UTC)
		r := slog.NewRecord(at.In(shanghai), slog.LevelInfo, "m", 0)
		r.Add("next", at.In(shanghai))
		servertest.OK(t, (&app{stderr: &out}).logger(config.Log{Format: format}).Handler().Handle(t.Context(), r))
		contains(t, out.String(), want)
	}
	const want = "It is due at 2026-03-02T07:59:59.250+08:00, says 2026."
	if got := localTimes("It is due at 2026-03-01T23:59:59.250Z, says 2026."); got != want {
		t.Errorf("got %s", got)
	}
	if at, err := parseTime("2026-03-02T07:59:59.250+08:00"); err != nil || at.UTC().Day() != 1 {
		t.Errorf("a flag reads it as %v, %v", at, err)
	}
}

func TestOtherOutputTakesThePlaceOfTheBusyLine(t *testing.T) {
	t.Parallel()
	var terminal bytes.Buffer
	b := &busy{}
	end := b.begin(&terminal, 24)
	after := func(seconds int) { b.draw(time.Now().Add(time.Duration(seconds) * time.Second)) }
	write := func(text string) { servertest.OK(t, one(clearing{&terminal, b}.Write([]byte(text)))) }
	after(0)
	after(3)
	write("a warning\n")
	after(4) // the command works on
	b.counts(2, 8, "checks")
	after(5)
	write("done?") // what is written now would stand behind it
	after(6)
	end()
	const want = "\rworking, 3 s \x1b[K\r\x1b[Ka warning\n\rworking, 4 s \x1b[K\r2 of 8 checks, 5 s\x1b[K\r\x1b[Kdone?"
	if got := terminal.String(); got != want {
		t.Errorf("the terminal got %q", got)
	}
}

func one[T any](_ T, err error) error { return err }

func TestTheBarFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for columns := 1; columns < 100; columns++ {
		for _, part := range []float64{0, 0.5, 1, 1.2, math.NaN()} {
			line := barred(columns, part, "1,000 of 100,000 tasks")
			if w := runewidth.StringWidth(line); w >= columns && columns > 1 {
				t.Errorf("it takes %d of %d columns: %s", w, columns, line)
			}
		}
	}
	contains(t, barred(40, 0.5, "9 of 18"), "[##############...............] 9 of 18")
	contains(t, barred(0, 0.5, "9 of 18"), "[####################....................] 9 of 18")
}
