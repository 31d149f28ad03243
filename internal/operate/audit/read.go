package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/report"
)

const (
	// mostLooked is how many entries a page looks at.
	mostLooked  = 10_000
	mostAtOnce  = 1000 // entries that are read at once
	mostShown   = 1000 // entries of a page
	shownByRule = 100  // where nothing is said
)

// Store keeps entries, and tells the time of their database.
type Store interface {
	store.Auditor
	store.Clock
}

// Read returns a page of the log. shown says whether the caller may see entries of a tag; nil: all. An entry that is
// about all tags, several or none has the tag "".
//
// It returns [delaytask.ErrInvalidOption] for a negative Before or Limit.
func Read(ctx context.Context, s Store, f report.AuditFilter, shown func(tag string) bool) (
	page report.AuditPage, err error) {
	var now time.Time
	if f.Before < 0 || f.Limit < 0 {
		return page, fmt.Errorf("%w: before is %d and limit is %d; want none below 0", delaytask.ErrInvalidOption,
			f.Before, f.Limit)
	}
	below, limit := cmp.Or(f.Before, math.MaxInt64), min(cmp.Or(f.Limit, shownByRule), mostShown)
	// It looks for one entry more than the page has, so that Next is set only where there is one. What a filter leaves
	// out most of is read in large steps.
	looked := 0
	for n := limit + 1; ; n *= 2 {
		n = min(n, mostAtOnce, mostLooked-looked)
		if n == 0 {
			page.Next, page.Stopped = below, true
			return page, nil
		}
		entries, err := s.AuditEntries(ctx, "", below, n)
		if err != nil {
			return report.AuditPage{}, fmt.Errorf("read the audit log: %w", err)
		}
		for i := range entries {
			e := &entries[i]
			matches := (f.Who == "" || e.Who == f.Who) && (f.Action == "" || e.Action == f.Action) &&
				(f.Tag == "" || e.Tag == f.Tag) && (shown == nil || shown(e.Tag))
			if matches && len(page.Entries) == limit {
				page.Next = page.Entries[limit-1].ID
				return page, nil
			}
			if matches && Open(e) && now.IsZero() {
				reading, err := s.Now(ctx)
				if err != nil {
					return report.AuditPage{}, fmt.Errorf("read the database's clock: %w", err)
				}
				now = reading.Time.Std()
			}
			if matches {
				page.Entries = append(page.Entries, entryOf(e, now))
			}
			below = e.ID
		}
		if looked += len(entries); len(entries) < n {
			return page, nil
		}
	}
}

func entryOf(e *row.AuditEntry, now time.Time) report.AuditEntry {
	shown := report.AuditEntry{
		ID: e.ID, Time: e.Begin.Std(), Who: e.Who, Via: e.Via, Action: e.Action, Target: e.Target, Tag: e.Tag,
		Detail: e.Detail, Outcome: e.Outcome, Tasks: e.Tasks, Error: e.Error, Ended: e.End.Std(),
	}
	if Lost(e, now) {
		shown.Outcome = report.AuditLost
	}
	return shown
}
