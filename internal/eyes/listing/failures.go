package listing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
)

// Group is failed tasks of a tag whose errors are the same except for numbers, addresses and quoted texts.
type Group struct {
	ID          string // of the tag and the error
	Tag         string
	Error       string // the first line, with * for what differs; of a long one the beginning
	Tasks       int
	First, Last row.Time // when these tasks failed
	Example     row.Failure
}

// Groups are groups of failed tasks, the largest first.
type Groups struct {
	Groups []Group
	Looked int  // tasks that were looked at
	More   bool // there are older ones
}

// MostGrouped is how many failed tasks ReadGroups looks at.
const MostGrouped = 1000

// ReadGroups groups the newest failed tasks of a tag, or of all.
func ReadGroups(ctx context.Context, s Store, tag string) (Groups, error) {
	q := Query{Order: ByDueDown, Status: new(row.Failed), Tag: tag}
	w, err := q.walk(ctx, s)
	if err != nil {
		return Groups{}, err
	}
	places, err := w.next(ctx, MostGrouped+1)
	if err != nil {
		return Groups{}, err
	}
	ids := make([]int64, min(len(places), MostGrouped))
	for i := range ids {
		ids[i] = places[i].ID
	}
	failures, err := s.Failures(ctx, ids)
	if err != nil {
		return Groups{}, err
	}
	return Groups{GroupOf(failures), len(failures), len(places) > MostGrouped}, nil
}

// GroupOf groups failures, the largest group first.
func GroupOf(failures []row.Failure) (groups []Group) {
	byID := map[string]*Group{}
	for _, f := range failures {
		id := GroupID(f)
		g := byID[id]
		if g == nil {
			g = &Group{ID: id, Tag: f.Tag, Error: common(firstLine(f)), First: f.At, Last: f.At, Example: f}
			byID[id] = g
		}
		g.Tasks++
		g.First = min(g.First, f.At)
		if f.At >= g.Last {
			g.Last, g.Example = f.At, f
		}
	}
	for _, g := range byID {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(b.Last, a.Last), strings.Compare(a.ID, b.ID))
	})
	return groups
}

// differs is what tells errors of one cause apart: quoted texts, UUIDs, addresses, hexadecimal and other numbers.
var differs = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'` + "|`[^`]*`" +
	`|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b` +
	`|\[[0-9a-fA-F:.%]*:[0-9a-fA-F:.%]*\](?::\d+)?` +
	`|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b` +
	`|\b(?:0[xX])[0-9a-fA-F]+\b|\b[0-9a-fA-F]*(?:\d[a-fA-F]|[a-fA-F]\d)[0-9a-fA-F]{6,}\b` +
	`|\d+(?:\.\d+)?`)

// openQuote is a quoted text whose end is cut.
var openQuote = regexp.MustCompile("[\"`][^\"`]*$")

// mostOfCut is how many bytes of a cut line are compared. How much follows depends on the length of what differs.
const mostOfCut = 150

// GroupID returns the id of the group that the failure belongs to. Its error is the first row.FailureSize bytes.
func GroupID(f row.Failure) string {
	sum := sha256.Sum256([]byte(f.Tag + "\n" + common(firstLine(f))))
	return hex.EncodeToString(sum[:8])
}

// Masked is what the failure has in common with others, without secrets: with * in them they are not recognised. mask
// masks the secrets in a text of the tag.
func Masked(f row.Failure, mask func(tag, text string) string) string {
	line, isCut := firstLine(f)
	if !isCut {
		return common(mask(f.Tag, line), false)
	}
	return common(strings.TrimSuffix(mask(f.Tag, line+redact.Cut), redact.Cut), true)
}

// firstLine returns the first line of the error of a failure, and whether its end is missing.
func firstLine(f row.Failure) (line string, isCut bool) {
	line, _, whole := strings.Cut(f.Error, "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "�"), !whole && len(f.Error) == row.FailureSize
}

// common returns what an error has in common with others.
func common(line string, isCut bool) string {
	text := differs.ReplaceAllString(line, "*")
	if !isCut {
		return text
	}
	text = openQuote.ReplaceAllString(text, "*")
	if len(text) < mostOfCut { // how much follows what differs depends on its length
		text = text[:strings.LastIndexByte(text, '*')+1]
	}
	return strings.ToValidUTF8(text[:min(len(text), mostOfCut)], "")
}
