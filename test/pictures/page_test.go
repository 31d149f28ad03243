package main

import (
	"bytes"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAPageIsShownInBothThemes(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium here")
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<style>body{background:#fff}" +
			"@media(prefers-color-scheme:dark){body{background:#000}}</style>"))
	}))
	defer site.Close()
	file := filepath.Join(t.TempDir(), "page")
	serve := "trap exit INT; echo the address is; echo " + site.URL + "; while :; do sleep 0.1; done"
	if err := photograph(file, "300x200", []string{"bash", "-c", serve}); err != nil {
		t.Fatal(err)
	}
	for theme, want := range map[string]uint32{"light": 0xffff, "dark": 0} {
		shown, err := os.ReadFile(file + "-" + theme + ".png")
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(shown))
		if err != nil {
			t.Fatal(err)
		}
		size := picture.Bounds().Size()
		if got, _, _, _ := picture.At(150, 100).RGBA(); got != want || size.X != 300 || size.Y != 200 {
			t.Errorf("%s: the page is %x, want %x, and its size %v", theme, got, want, size)
		}
	}
}
