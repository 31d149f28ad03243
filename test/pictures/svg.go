package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// picture is a recorded command.
type picture struct {
	command string
	lines   []line
	took    time.Duration
	shown   int // rows
}

// The layout depends on no font: every word that follows a gap has a place of its own.
const (
	charWidth  = 8.4 // of a monospaced font of 14
	lineHeight = 19
	margin     = 18
	bar        = 36 // above the rows

	lead   = 800 * time.Millisecond // the prompt stands alone
	hold   = 8 * time.Second        // the last frame stays
	frames = 50 * time.Millisecond  // lines that come together appear together
)

func (p *picture) svg() string {
	last := 0
	for _, l := range p.lines {
		last = max(last, l.row+1) // below the prompt
	}
	width := int(math.Ceil(columns*charWidth)) + 2*margin
	height := bar + p.shown*lineHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
%s%s</style>
<rect class="window" x=".5" y=".5" width="%d" height="%d" rx="9"/>
<circle class="button" cx="20" cy="18" r="5.5"/><circle class="button" cx="39" cy="18" r="5.5"/>`+
		`<circle class="button" cx="58" cy="18" r="5.5"/>
<text class="name" x="%d" y="23" text-anchor="middle">%s</text>
<svg x="%d" y="%d" width="%d" height="%d">
<g class="rows" transform="translate(0 %d)">
<text x="0" y="15"><tspan class="dim">$</tspan> <tspan class="bold">%s</tspan></text>
`, width, height, html.EscapeString("A recording of "+p.command), colours, p.animation(), width-1, height-1,
		width/2, html.EscapeString(p.command), margin, bar, width-margin, height-bar, -p.scrolled(last),
		html.EscapeString(p.command))
	for _, l := range p.lines {
		gone := ""
		if l.to > 0 {
			gone = ` opacity="0"` // unless it is animated
		}
		fmt.Fprintf(&b, "<text class=\"%s\" y=\"%d\"%s>%s</text>\n", p.name(&l), 15+(l.row+1)*lineHeight, gone,
			spans(l.cells))
	}
	b.WriteString("</g>\n</svg>\n</svg>\n")
	return b.String()
}

const colours = `svg{--paper:#fff;--edge:#d0d7de;--ink:#1f2328;--faint:#636c76;--button:#d0d7de;
--red:#cf222e;--green:#1a7f37;--yellow:#9a6700}
@media(prefers-color-scheme:dark){svg{--paper:#161b22;--edge:#30363d;--ink:#e6edf3;--faint:#8d96a0;--button:#30363d;
--red:#ff7b72;--green:#3fb950;--yellow:#d29922}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;
fill:var(--ink);white-space:pre}
.window{fill:var(--paper);stroke:var(--edge)}.button{fill:var(--button)}
.name{fill:var(--faint);font-size:13px}.bold{font-weight:600}.dim{fill:var(--faint)}
.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}
`

// animation lets each line appear at its time, and the rows scroll. Without it the picture is its last frame.
func (p *picture) animation() string {
	total := lead + p.took + hold
	at := func(d time.Duration) string { return fmt.Sprintf("%.4g%%", 100*float64(d)/float64(total)) }
	var b strings.Builder
	fmt.Fprintf(&b, "@media(prefers-reduced-motion:no-preference){\n"+
		"g text+text,.rows{animation:%.4gs step-end infinite}.rows{animation-name:rows}\n", total.Seconds())
	var moves []string // the keyframes of the rows, one at a time
	when, scrolled, row := "", 0, 0
	var named []string
	for _, l := range p.lines {
		row = max(row, l.row+1)
		if now := p.scrolled(row); now != scrolled {
			if begin := at(frame(l.from)); begin == when {
				moves = moves[:len(moves)-1]
			} else {
				when = begin
			}
			scrolled = now
			moves = append(moves, fmt.Sprintf("%s{transform:translateY(%dpx)}", when, -now))
		}
		name := p.name(&l)
		if slices.Contains(named, name) {
			continue
		}
		named = append(named, name)
		ends := ",to{opacity:1}"
		if l.to > 0 {
			ends = fmt.Sprintf("{opacity:1}%s,to{opacity:0}", at(frame(l.to)))
		}
		fmt.Fprintf(&b, ".%s{animation-name:%s}@keyframes %s{0%%{opacity:0}%s%s}\n", name, name, name,
			at(frame(l.from)), ends)
	}
	fmt.Fprintf(&b, "@keyframes rows{0%%{transform:none}%sto{transform:translateY(%dpx)}}\n}\n",
		strings.Join(moves, ""), -scrolled)
	return b.String()
}

// frame returns when in the picture something is seen.
func frame(d time.Duration) time.Duration { return lead + d.Truncate(frames) }

// name is the class of all lines that are seen for the same time.
func (p *picture) name(l *line) string {
	name := fmt.Sprintf("f%d", l.from/frames)
	if l.to > 0 {
		name += fmt.Sprintf("-%d", l.to/frames)
	}
	return name
}

// scrolled returns by how much the rows have moved up when the row is the last one that is written.
func (p *picture) scrolled(row int) int { return max(0, row+1-p.shown) * lineHeight }

// spans returns the words of a row. A gap of two columns and a change of style begin a new span.
func spans(cells []uv.Cell) string {
	var b strings.Builder
	for x := 0; x < len(cells); {
		if isBlank(&cells[x]) {
			x++
			continue
		}
		begin, text := x, ""
		for x < len(cells) && cells[x].Style.Equal(&cells[begin].Style) && !gapAt(cells, x) {
			text += cells[x].Content
			x++
		}
		class := ""
		if c := classOf(&cells[begin].Style); c != "" {
			class = ` class="` + c + `"`
		}
		fmt.Fprintf(&b, `<tspan x="%.4g"%s>%s</tspan>`, float64(begin)*charWidth, class,
			html.EscapeString(strings.TrimRight(text, " ")))
	}
	return b.String()
}

func gapAt(cells []uv.Cell, x int) bool {
	return isBlank(&cells[x]) && (x+1 == len(cells) || isBlank(&cells[x+1]))
}

func classOf(s *uv.Style) string {
	switch {
	case s.Fg == ansi.Red:
		return "red"
	case s.Fg == ansi.Green:
		return "green"
	case s.Fg == ansi.Yellow:
		return "yellow"
	case s.Attrs&uv.AttrBold != 0:
		return "bold"
	case s.Attrs&uv.AttrFaint != 0:
		return "dim"
	default:
		return ""
	}
}
