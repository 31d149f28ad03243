package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
)

// Save stores a task. It takes the verb save, or save_http for the tag http. With a conflict mode that may change the
// existing task of the key, which another caller may have saved, it takes change, too. A save that finds such a task is
// recorded as its reschedule.
//
// It returns [delaytask.ErrRedacted] as SetBody does, [access.ErrForbidden], the error of Config.Check, and what
// [scheduler.Scheduler.SaveDelayTask] returns.
func (o *Operator) Save(ctx context.Context, by By, item delaytask.Item) (core.Saved, error) {
	s, err := o.check(by, &item)
	if err != nil {
		return core.Saved{}, err
	}
	if s.OnConflict == "" || !o.Audit.Records(audit.RescheduleTask) {
		return o.Core.SaveChecked(ctx, s)
	}
	key := row.TagKey{Tag: s.Tag, Key: row.ScopedKey(s.Headers[delaytask.AppHeader], s.Key)}
	holders, err := o.store.FindActive(ctx, nil, []row.TagKey{key})
	if err != nil {
		return core.Saved{}, err
	}
	var saved core.Saved
	if len(holders) == 0 {
		saved, err = o.Core.SaveChecked(ctx, s)
		if err != nil || !saved.Rescheduled {
			return saved, err
		}
		holders = []row.Row{{ID: saved.ID}} // it was saved meanwhile
	}
	t := target{name: strconv.FormatInt(holders[0].ID, 10), tag: s.Tag}
	act := by.act(audit.RescheduleTask, t, "on_conflict="+string(s.OnConflict)+" "+when(s.Delay, s.At))
	err = o.Audit.Do(ctx, act, func(ctx context.Context) (tasks int64, err error) {
		if !saved.Rescheduled {
			saved, err = o.Core.SaveChecked(ctx, s)
		}
		if saved.Rescheduled {
			tasks = 1
		}
		return tasks, err
	})
	return saved, recorded(by, err)
}

// when is the detail of a change of a task's time.
func when(delay time.Duration, at time.Time) string {
	if at.IsZero() {
		return "delay=" + delay.String()
	}
	return "at=" + at.UTC().Format(time.RFC3339Nano)
}

// CheckSave returns what Save refuses before it asks the database.
func (o *Operator) CheckSave(by By, item delaytask.Item) error {
	_, err := o.check(by, &item)
	return err
}

// SaveAll is Save for many tasks. All are checked first: of a wrong one it returns a [delaytask.BatchError], and stores
// nothing. The changes of existing tasks have one entry in the audit log. It empties the items.
func (o *Operator) SaveAll(ctx context.Context, by By, items []delaytask.Item) ([]delaytask.SaveResult, error) {
	var modes, tags []string
	saves := make([]delaytask.Save, len(items))
	for i := range items {
		s, err := o.check(by, &items[i])
		if err != nil {
			return nil, &delaytask.BatchError{Index: i, Err: err}
		}
		saves[i], items[i] = s, delaytask.Item{} // the save has a copy of the body
		if s.OnConflict != "" {
			modes, tags = append(modes, string(s.OnConflict)), append(tags, s.Tag)
		}
	}
	if len(modes) == 0 {
		return o.Core.SaveAllChecked(ctx, saves)
	}
	slices.Sort(modes)
	slices.Sort(tags)
	var t target
	if tags = slices.Compact(tags); len(tags) == 1 {
		t.tag = tags[0]
	}
	detail := fmt.Sprintf("%d saves with on_conflict=%s", len(modes), strings.Join(slices.Compact(modes), ","))
	var results []delaytask.SaveResult
	err := o.Audit.Do(ctx, by.act(audit.RescheduleTask, t, detail), func(ctx context.Context) (n int64, err error) {
		results, err = o.Core.SaveAllChecked(ctx, saves)
		for _, r := range results {
			if r.Rescheduled {
				n++
			}
		}
		return n, err
	})
	return results, recorded(by, err)
}

// check reads what a save asks for. It refuses a caller that may not make it, and what a tag's rules do not take.
func (o *Operator) check(by By, item *delaytask.Item) (delaytask.Save, error) {
	s, err := o.Core.Check(item.Tag, item.Body, item.Delay, item.Options)
	if err == nil && redact.Holds(s.Body) {
		err = delaytask.ErrRedacted
	}
	if err == nil {
		err = by.Allow(access.ToSave(s.Tag), s.Tag)
	}
	if err == nil && s.OnConflict != "" {
		err = by.Allow(access.Change, s.Tag)
	}
	if err == nil {
		err = o.checkBody(s.Tag, s.Body)
	}
	return s, err
}

// reserved begins the names of headers that have fields of their own.
const reserved = "delaytask-"

// CheckHeaders refuses headers that a caller may not give a task. It returns [delaytask.ErrRedacted] for a value that
// was made from one with masks, and [delaytask.ErrInvalidHeaders] for a name that is reserved.
func CheckHeaders(headers map[string]string) error {
	for name, value := range headers {
		if redact.Holds([]byte(value)) {
			return fmt.Errorf("header %.140q: %w", name, delaytask.ErrRedacted)
		}
		if strings.HasPrefix(strings.ToLower(name), reserved) {
			return fmt.Errorf("%w: names that begin with %s are reserved", delaytask.ErrInvalidHeaders, reserved)
		}
	}
	return nil
}
