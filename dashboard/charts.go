package dashboard

import (
	"fmt"
	"strings"
)

const (
	sparkHeight = 20
	sparkWidth  = 6 // of a bar, with the gap after it
)

// spark is the path of bars beside each other.
func spark(all []int64, most int64) string {
	var b strings.Builder
	for i, n := range all {
		if n > 0 {
			height := max(1, n*sparkHeight/most)
			fmt.Fprintf(&b, "M%d %dv%dh%dv-%dz", i*sparkWidth, sparkHeight-height, height, sparkWidth-1, height)
		}
	}
	return b.String()
}
