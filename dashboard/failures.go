package dashboard

import (
	"context"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/report"
)

// failuresPage is failed tasks, grouped by their errors.
type failuresPage struct {
	report.Failures
	Tag      string
	Known    []string
	NeedsTag bool // nothing was read: the user sees some tags only
	LeftOut  int  // groups that are not shown
}

// mostGroups is how many groups a page shows.
const mostGroups = 100

// failures shows failed tasks, grouped.
func (v *view) failures() (any, error) {
	tag, err := v.oneTag(access.Read)
	if err != nil {
		return nil, err
	}
	shown := failuresPage{Tag: tag, NeedsTag: tag == "" && !v.allTags(access.Read)}
	if !isPart(v.r) {
		shown.Known = v.knownTags()
	}
	if !shown.NeedsTag {
		shown.Failures, err = v.failed(tag)
		shown.Groups, shown.LeftOut = firstOf(shown.Groups, mostGroups)
	}
	return shown, err
}

// failed reads the groups of a tag, or of all when that is "".
func (v *view) failed(tag string) (report.Failures, error) {
	if err := v.look().MayList(tag); err != nil {
		return report.Failures{}, err
	}
	return kept(v.r.Context(), v.keep, "failures "+tag, keepGroups, func(ctx context.Context) (report.Failures, error) {
		return v.scheduler.Failures(ctx, tag)
	})
}

// All is how many groups there are.
func (p failuresPage) All() int { return len(p.Groups) + p.LeftOut }

// Command is the command that shows the same.
func (p failuresPage) Command() string {
	return sentence.Command("failures", "tag", p.Tag)
}
