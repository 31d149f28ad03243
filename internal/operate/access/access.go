// Package access identifies the callers of the HTTP service and holds their rights: bearer tokens, the verbs and tags
// of each, and the caller of a request.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask"
)

var (
	// ErrUnauthorized is returned for a token that is unknown, revoked or expired, and for a call without one.
	ErrUnauthorized = errors.New("the bearer token is unknown or has expired; delaytask token create makes one")

	// ErrBootstrapEnded is returned for a bootstrap token that has ended. It is an ErrUnauthorized.
	ErrBootstrapEnded = fmt.Errorf("%w: it is a bootstrap token that was revoked, or that ended when a token with all "+
		"verbs for all tags was made", ErrUnauthorized)

	// ErrUnavailable is returned when the tokens cannot be read and the last reading is too old. A later call may
	// succeed.
	ErrUnavailable = errors.New("the tokens cannot be read from the database; try again later")

	// ErrForbidden is returned to a caller that lacks a right.
	ErrForbidden = errors.New("the caller may not do this")

	// ErrInvalid is returned for a new token with an invalid name, tag or verb. The text says what is valid.
	ErrInvalid = errors.New("invalid access")
)

// Verb is something that a caller may do with tasks of a tag.
type Verb string

const (
	Save     Verb = "save"      // save tasks, of any tag but "http"
	SaveHTTP Verb = "save_http" // save tasks of the tag "http", whose addresses the server calls
	Read     Verb = "read"      // see tasks and schedules, without their bodies
	Bodies   Verb = "bodies"    // see the bodies too, beside Read
	Change   Verb = "change"    // cancel, reschedule and retry tasks, and change their bodies
	Work     Verb = "work"      // pop tasks, and finish, fail, release and touch them
	Observe  Verb = "observe"   // see nodes, statistics and receivers
	Operate  Verb = "operate"   // pause and resume tags, run and pause schedules; it includes Observe
	Metrics  Verb = "metrics"   // read the metrics, which name all tags; Operate on all tags includes it
	Schedule Verb = "schedule"  // save and delete schedules; for the tag "http" with SaveHTTP
	Audit    Verb = "audit"     // see what people have changed
	Register Verb = "register"  // register receivers, whose addresses are called back with tasks

	// All is every verb, also those that later releases add.
	All Verb = "all"
)

// Verbs lists what a caller may do, without All.
var Verbs = []Verb{Save, SaveHTTP, Read, Bodies, Change, Work, Observe, Operate, Metrics, Audit, Register, Schedule}

// HTTPTag is the built-in tag whose tasks name the address to call.
const HTTPTag = "http"

// ToSave returns the verb that saving a task of the tag requires.
func ToSave(tag string) Verb {
	if tag == HTTPTag {
		return SaveHTTP
	}
	return Save
}

// ParseVerbs reads verbs by their names, each once. It returns [ErrInvalid] for an unknown verb and for an empty list.
func ParseVerbs(names []string) ([]Verb, error) {
	var verbs []Verb
	for _, name := range names {
		v := Verb(strings.TrimSpace(name))
		if v != All && !slices.Contains(Verbs, v) {
			return nil, fmt.Errorf("%w: there is no verb %.40q: want %s", ErrInvalid, v, verbNames())
		}
		if !slices.Contains(verbs, v) {
			verbs = append(verbs, v)
		}
	}
	if len(verbs) == 0 {
		return nil, fmt.Errorf("%w: a token without verbs may do nothing: want some of %s", ErrInvalid, verbNames())
	}
	return verbs, nil
}

func verbNames() string {
	var list strings.Builder
	for _, v := range Verbs {
		list.WriteString(string(v) + ", ")
	}
	return list.String() + "or " + string(All)
}

// anyTag is the pattern of all tags.
const anyTag = "*"

// ParseTags reads patterns of tags, each once: a tag, the beginning of tags with a "*" at its end, or "*" alone for all
// tags. It returns [ErrInvalid] for anything else and for an empty list.
func ParseTags(patterns []string) ([]string, error) {
	var tags []string
	for _, pattern := range patterns {
		pattern = strings.TrimSpace(pattern)
		prefix, open := strings.CutSuffix(pattern, "*")
		if all := open && prefix == ""; !all && !delaytask.ValidTag(prefix) {
			return nil, fmt.Errorf("%w: %.140q stands for no tag: want a tag, the beginning of tags as in order.*, "+
				"or * for all", ErrInvalid, pattern)
		}
		if !slices.Contains(tags, pattern) {
			tags = append(tags, pattern)
		}
	}
	if len(tags) == 0 {
		return nil, fmt.Errorf("%w: a token without tags may use none: want tags such as order.close or order.*, or "+
			"* for all", ErrInvalid)
	}
	return tags, nil
}

// Match reports whether one of the patterns matches the tag.
func Match(patterns []string, tag string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, tag) })
}

func matches(pattern, tag string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(tag, prefix)
	}
	return pattern == tag
}
