package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestTheReadmesPicturesAreTaken writes the pictures of the demo's dashboard into the folder that the environment
// names: make pictures.
func TestTheReadmesPicturesAreTaken(t *testing.T) {
	folder := os.Getenv("DELAYTASK_TEST_PICTURES")
	if folder == "" {
		t.Skip("DELAYTASK_TEST_PICTURES names no folder")
	}
	demo := servertest.Launch(t, exec.Command(servertest.Build(t, "./cmd/delaytask"), "demo", "--ui"))
	t.Cleanup(demo.Stops) // after its tabs are closed
	url := demo.Says(`^http\S+`)
	for _, theme := range themes {
		b := open(t, url, "theme="+theme)
		b.do(chromedp.EmulateViewport(1280, 1165))
		b.visit("")
		b.until("[...document.querySelectorAll('.plot')].every((e) => e.querySelector('canvas'))")
		shown, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		servertest.OK(t, err)
		servertest.OK(t, os.WriteFile(filepath.Join(folder, "dashboard-"+theme+".png"), small(t, shown), 0o644))
	}
}

// small returns the picture with its 256 most frequent colours alone. The others are at the edges of letters, and
// become the nearest of these.
func small(t *testing.T, picture []byte) []byte {
	full, err := png.Decode(bytes.NewReader(picture))
	servertest.OK(t, err)
	counts, bounds := map[color.RGBA]int{}, full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], slices.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range frequent[:min(256, len(frequent))] {
		palette = append(palette, c)
	}
	few := image.NewPaletted(bounds, palette)
	draw.Draw(few, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	servertest.OK(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}
