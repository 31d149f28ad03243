package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ZoneData returns the version of the zone data that this machine has, such as "2025b", or "" where it is not known.
// Later versions compare greater.
var ZoneData = sync.OnceValue(func() string {
	folders := []string{os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"}
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		for _, name := range []string{"+VERSION", "tzdata.zi"} {
			if version := versionIn(filepath.Join(dir, name)); version != "" {
				return version
			}
		}
	}
	return ""
})

// versionIn reads the first line of a file, which is "2025b" or "# version 2025b".
func versionIn(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	var head [64]byte
	n, _ := f.Read(head[:])
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	version := strings.TrimPrefix(string(line), "# version ")
	if len(version) < len("2025a") || strings.ContainsAny(version, " #/") {
		return ""
	}
	return version
}
