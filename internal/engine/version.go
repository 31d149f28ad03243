package engine

import (
	"crypto/sha256"
	"encoding/hex"
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

// digest returns the digest of the program's file, "" when it cannot be read.
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
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:shortest]
}
