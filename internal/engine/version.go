package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
)

// Version is the version of delaytask.
const Version = "0.1.0"

// build is what the node's row says of the program: the version of delaytask and, after a plus, what tells this build
// from others. That is the revision of the program, or the digest of its file where the revision does not say it all.
var build = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return Version + buildOf(info, digest)
})

const shortest = 12 // hexadecimal digits of a revision or a digest

func buildOf(info *debug.BuildInfo, digest func() string) (suffix string) {
	var modified bool
	if info != nil {
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				suffix = "+" + setting.Value[:min(shortest, len(setting.Value))]
			case "vcs.modified":
				modified = setting.Value == "true"
			}
		}
	}
	if suffix != "" && !modified {
		return suffix
	}
	sum := digest()
	switch {
	case sum == "":
		return suffix
	case suffix == "":
		return "+build." + sum
	default:
		return suffix + ".modified." + sum
	}
}

// headSize is how much of a program's file holds its build ID, which names the content of the rest.
const headSize = 32 << 10

// digest returns a digest of the program's file, "" when it cannot be read. It reads the beginning and the size alone
// where there is a build ID: to read all takes most of the time of a start.
func digest() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	head := make([]byte, min(headSize, info.Size()))
	if _, err := io.ReadFull(file, head); err != nil {
		return ""
	}
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%d %s", info.Size(), head))
	if !hasBuildID(head) {
		if _, err := io.Copy(sum, file); err != nil {
			return ""
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:shortest]
}

// hasBuildID finds the note that ELF files have, and what begins the code in others.
func hasBuildID(head []byte) bool {
	return bytes.Contains(head, []byte("Go\x00\x00")) || bytes.Contains(head, []byte("\xff Go build ID: \""))
}
