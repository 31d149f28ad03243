package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// The terminal has more rows than a command prints, so that a line stays in its row. The picture scrolls.
const (
	columns = 100
	rows    = 300
)

// line is what a row of the terminal held for a time.
type line struct {
	row      int
	from, to time.Duration // since the start; to is 0 for what stays
	cells    []uv.Cell
}

// record runs a command on a pseudo-terminal and returns its lines and how long it took.
func record(args []string) (lines []line, took time.Duration, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMPDIR=/tmp", "NO_COLOR=")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		return nil, 0, err
	}
	defer terminal.Close()
	start := time.Now()
	screen := vt.NewEmulator(columns, rows)
	defer screen.InputPipe().(io.Closer).Close()     // which ends the copy below
	go func() { _, _ = io.Copy(terminal, screen) }() // what a terminal answers to questions
	held := make([]int, rows)                        // the index of the line that a row holds, plus 1
	buffer := make([]byte, 1<<16)
	for err == nil {
		var n int
		n, err = terminal.Read(buffer)
		if _, err := screen.Write(buffer[:n]); err != nil {
			return nil, 0, err
		}
		took = time.Since(start)
		for row := range rows {
			lines = look(screen, lines, &held[row], row, took)
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) { // EIO: on Linux, after the command's end
		return nil, 0, err
	}
	return lines, took, cmd.Wait()
}

// look adds what the row holds now unless it held it before.
func look(screen *vt.Emulator, lines []line, held *int, row int, at time.Duration) []line {
	cells := make([]uv.Cell, columns)
	blank := true
	for x := range cells {
		if cell := screen.CellAt(x, row); cell != nil {
			cells[x] = *cell
			blank = blank && isBlank(cell)
		}
	}
	if *held > 0 {
		before := &lines[*held-1]
		if same(before.cells, cells) {
			return lines
		}
		before.to = at
		*held = 0
	}
	if blank {
		return lines
	}
	*held = len(lines) + 1
	return append(lines, line{row: row, from: at, cells: cells})
}

func isBlank(c *uv.Cell) bool { return c.Content == "" || c.Content == " " }

func same(a, b []uv.Cell) bool {
	for i := range a {
		if !a[i].Equal(&b[i]) {
			return false
		}
	}
	return true
}
