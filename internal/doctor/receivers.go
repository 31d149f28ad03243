package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/redact"
)

// checkReceivers looks for addresses that have gone silent or answer with errors, by a sample of the newest tasks.
func checkReceivers(ctx context.Context, s *Subject) (found []Finding, err error) {
	receivers, _, err := s.Store.Receivers(ctx)
	if err != nil {
		return nil, err
	}
	silent, err := s.inspect.SilentReceivers(ctx, sampled)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, w := range silent {
		addresses = append(addresses, redact.Address(w.Address, redact.Mask))
	}
	if len(addresses) > 0 {
		found = append(found, Finding{"receivers_silent", Warning,
			"receivers have sent no heartbeat within their time to live: " + few(addresses),
			"they are called no more; tasks of a tag without another receiver wait",
			"start them again, or let them deregister when they stop"})
	}
	tags := slices.Clone(s.Receivers)
	for _, w := range receivers {
		tags = append(tags, w.Tags...)
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	for _, tag := range tags[:min(len(tags), sampled)] {
		texts, err := s.inspect.LastErrors(ctx, tag, sampled)
		if err != nil {
			return found, err
		}
		failed := slices.DeleteFunc(texts, func(text string) bool { return !strings.HasPrefix(text, failedCall) })
		if len(failed) == 0 {
			continue
		}
		last, _, _ := strings.Cut(failed[0], "\n")
		found = append(found, Finding{"receiver_fails", Warning,
			fmt.Sprintf("calls with %s of tag %s have failed within the last hour: %s", atLeast(len(failed)), tag,
				redact.Text(tag, strings.TrimPrefix(last, failedCall))),
			"the tasks are tried again until their attempts are used up; the log of the receiver says why it fails",
			"repair the receiver, then run those that failed for good again: " + sentence.Command("retry", "tag", tag)})
	}
	return found, nil
}

// failedCall begins the errors of calls.
const failedCall = "webhook: "
