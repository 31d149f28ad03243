package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/processor"
)

// anyTag is the pattern of all tags.
const anyTag = "*"

// ParseTags reads patterns of tags, each once: a tag, the beginning of tags with a "*" at its end, or "*" alone for all
// tags. It returns [ErrInvalid] for what is none, and when there are none.
func ParseTags(patterns []string) ([]string, error) {
	var tags []string
	for _, pattern := range patterns {
		pattern = strings.TrimSpace(pattern)
		prefix, open := strings.CutSuffix(pattern, "*")
		if all := open && prefix == ""; !all && !processor.ValidTag(prefix) {
			return nil, fmt.Errorf("%w: %.140q stands for no tag: want a tag, the beginning of tags as in order.*, or * for all",
				ErrInvalid, pattern)
		}
		if !slices.Contains(tags, pattern) {
			tags = append(tags, pattern)
		}
	}
	if len(tags) == 0 {
		return nil, fmt.Errorf("%w: a token without tags may use none: want tags such as order.close or order.*, or * for all",
			ErrInvalid)
	}
	return tags, nil
}

// Match reports whether one of the patterns stands for the tag.
func Match(patterns []string, tag string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, tag) })
}

func matches(pattern, tag string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(tag, prefix)
	}
	return pattern == tag
}
