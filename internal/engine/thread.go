package engine

import (
	"bytes"
	"runtime"
)

// currentThread names the running goroutine the way stack dumps do: "goroutine 42 ".
func currentThread() string {
	var head [64]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte("["))
	return string(name)
}

// stackOf returns the stack of the named goroutine, or "" when it has ended.
func stackOf(thread string) string {
	dump := make([]byte, 1<<20)
	dump = dump[:runtime.Stack(dump, true)]
	for stack := range bytes.SplitSeq(dump, []byte("\n\n")) {
		if thread != "" && bytes.HasPrefix(stack, []byte(thread)) {
			return string(stack)
		}
	}
	return ""
}
