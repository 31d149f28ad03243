package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// pageWait is how long a page may draw, by the clock of the browser, which does not wait.
const pageWait = 5 * time.Second

// photograph runs a command that serves a page, and takes a picture of it in each theme: FILE-light.png and
// FILE-dark.png. size is the width and the height, such as 1280x800.
func photograph(file, size string, args []string) (err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cmd.Process.Signal(syscall.SIGINT), cmd.Wait()) }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "http") {
			continue
		}
		for _, theme := range []string{"light", "dark"} {
			shown, err := screenshot(lines.Text(), theme, size)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file+"-"+theme+".png", shown, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("the command names no address on a line of its own")
}

// screenshot returns a picture of the page as a browser without a window shows it.
func screenshot(url, theme, size string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "delaytask-pictures-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "page.png")
	preferred := map[string]string{"dark": "0", "light": "1"}[theme] // as the browser numbers them
	browser := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+dir, "--window-size="+strings.Replace(size, "x", ",", 1), "--screenshot="+file,
		fmt.Sprint("--virtual-time-budget=", pageWait.Milliseconds()),
		"--blink-settings=preferredColorScheme="+preferred, url)
	if said, err := browser.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	shown, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return small(shown)
}

// mostColours is how many a small picture has.
const mostColours = 256

// small returns the picture with the most frequent colours alone. The others become the nearest of these: they are of
// the edges of letters.
func small(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	counts := map[color.RGBA]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), slices.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	palette := color.Palette{}
	for _, c := range frequent[:min(mostColours, len(frequent))] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(bounds, palette)
	draw.Draw(few, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, few); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
