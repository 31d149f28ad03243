package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// served lists the files that browsers get. The files of vendor are byte for byte what their projects publish.
var served = []string{
	"style.css", "dashboard.js", "icon.svg",
	"vendor/htmx.min.js", "vendor/idiomorph-ext.min.js", "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css",
}

// files serves files whose names carry a hash, so browsers keep them for ever. A name without a hash is the file as it
// is now.
type files struct {
	names map[string]string // with the hash, by the name without
	all   map[string]file   // by the name with the hash
}

type file struct {
	kind           string
	plain, gzipped []byte
}

func newFiles() (files, error) {
	f := files{names: map[string]string{}, all: map[string]file{}}
	for _, name := range served {
		content, err := staticFiles.ReadFile("static/" + name)
		if err != nil {
			return files{}, err
		}
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			return files{}, err
		}
		if _, err := w.Write(content); err != nil {
			return files{}, err
		}
		if err := w.Close(); err != nil {
			return files{}, err
		}
		sum := sha256.Sum256(content)
		base, ext := path.Base(name), path.Ext(name)
		hashed := strings.TrimSuffix(base, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		f.names[base] = hashed
		f.all[hashed] = file{mime.TypeByExtension(ext), content, zipped.Bytes()}
	}
	return f, nil
}

// named returns the name with its hash, for a link.
func (f files) named(name string) string { return "static/" + f.names[name] }

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, keep := r.PathValue("name"), "public, max-age=31536000, immutable"
	if hashed := f.names[name]; hashed != "" { // as the login asks for it, which knows no hashes
		name, keep = hashed, "no-cache"
	}
	found, ok := f.all[name]
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", found.kind)
	h.Set("Cache-Control", keep)
	h.Set("Vary", "Accept-Encoding")
	content := found.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = found.gzipped
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = io.Copy(w, bytes.NewReader(content)) // the reader may be gone
}
