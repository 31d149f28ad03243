package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	overdueAfter = time.Minute      // an overdue task is started within seconds, whatever has gone wrong
	pausedFor    = time.Hour        // a shorter pause is an operator's work
	purgeAfter   = 10 * time.Minute // a purge deletes 20,000 rows in 5 s
	leaseOver    = 30 * time.Second // a rescue ends a lease within 5 s
	sampled      = 100              // rows
)

// checkTasks looks for due tasks that do not start, by the oldest of each tag.
func checkTasks(ctx context.Context, s *Subject) ([]Finding, error) {
	nodes, reading, err := s.Store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	states, _, err := s.Store.Tags(ctx)
	if err != nil {
		return nil, err
	}
	oldest, err := s.Store.Oldest(ctx, row.Pending)
	if err != nil {
		return nil, err
	}
	isPaused := func(tag string) bool {
		return slices.ContainsFunc(states, func(t row.TagState) bool { return t.Paused && t.Tag == tag })
	}
	isServed := func(tag string) bool {
		return slices.ContainsFunc(nodes, func(n row.Node) bool {
			return !n.Leaving && isAlive(n, reading.Time) && slices.Contains(n.Tags, tag)
		})
	}
	var paused, unserved, overdue late
	for _, of := range oldest {
		switch by := reading.Time.Sub(of.Oldest); {
		case of.Oldest.IsZero() || by < overdueAfter:
		case isPaused(of.Tag):
			if by >= pausedFor {
				paused.add(of.Tag, by)
			}
		case !isServed(of.Tag):
			unserved.add(of.Tag, by)
		default:
			overdue.add(of.Tag, by)
		}
	}
	var found []Finding
	if len(unserved.tags) > 0 {
		found = append(found, Finding{"tags_unserved", Warning,
			"due tasks have tags that no live process serves: " + unserved.String(),
			"their tasks wait until a process registers the tag; a letter's case counts",
			"start the process that serves them; delaytask nodes shows which tags are served"})
	}
	if len(paused.tags) > 0 {
		found = append(found, Finding{"tags_paused", Warning, "tasks wait for paused tags: " + paused.String(),
			"they start together when the tag is resumed",
			sentence.Command("resume") + " " + sentence.Argument(paused.tags[0])})
	}
	if len(overdue.tags) == 0 {
		return found, nil
	}
	waiting, err := s.overdue(ctx, overdue, reading.Time)
	return append(found, waiting...), err
}

// overdue tells rows that another transaction holds from those that just wait.
func (s *Subject) overdue(ctx context.Context, overdue late, now row.Time) ([]Finding, error) {
	due, err := s.Store.Due(ctx, row.Window{
		Tags: overdue.tags[:min(len(overdue.tags), sampled)],
		From: row.At(time.Unix(0, 0)), // without those that have no due time yet
		To:   now.Add(-overdueAfter), Limit: sampled})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(due))
	for i := range due {
		ids[i] = due[i].ID
	}
	locked, err := s.Store.Locked(ctx, ids)
	if err != nil {
		return nil, err
	}
	if len(locked) > 0 {
		return []Finding{{"tasks_locked", Warning,
			fmt.Sprintf("another transaction locks due tasks, such as %d", locked[0]),
			"they start when it ends; the oldest open transactions are the ones to look at",
			"SELECT * FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 20"}}, nil
	}
	return []Finding{{"tasks_overdue", Warning, "tasks are late: " + overdue.String(),
		"the processes have too few slots, their processors are slow, or the rows cannot be claimed",
		fmt.Sprintf("delaytask explain %d", firstOr(ids))}}, nil
}

func firstOr(ids []int64) int64 {
	if len(ids) == 0 {
		return 0
	}
	return ids[0]
}

// late lists tags, and for how long the oldest task of any has waited.
type late struct {
	tags []string
	by   time.Duration
}

func (l *late) add(tag string, by time.Duration) {
	l.tags, l.by = append(l.tags, tag), max(l.by, by)
}

func (l *late) String() string {
	return fmt.Sprintf("%s; the oldest is due for %s", few(l.tags), span(l.by))
}

func span(d time.Duration) string { return wire.FormatDuration(d.Truncate(time.Second)) }

const startOne = "start a process where none is alive, such as delaytask serve; delaytask nodes lists them"

// checkLeases looks for executing tasks whose lease is long over.
func checkLeases(ctx context.Context, s *Subject) ([]Finding, error) {
	reading, err := s.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := listing.Tags(ctx, s.Store, row.Executing)
	if err != nil {
		return nil, err
	}
	expired, broken, err := s.Store.Expired(ctx, tags, sampled)
	if err != nil {
		return nil, err
	}
	stuck := slices.DeleteFunc(expired, func(r row.Row) bool { return reading.Time.Sub(r.Due) < leaseOver })
	if len(stuck) > 0 {
		return []Finding{{"tasks_stuck", Critical,
			fmt.Sprintf("%s with a lease that is over for %s, such as %d", atLeast(len(stuck)),
				span(reading.Time.Sub(stuck[0].Due)), stuck[0].ID),
			"a rescue takes such tasks back within seconds: no process runs, or another transaction locks the rows",
			startOne}}, nil
	}
	if ahead, err := s.leasesAhead(ctx); err != nil || len(ahead) > 0 {
		return ahead, err
	}
	if len(broken) > 0 {
		return []Finding{{"tasks_broken", Warning,
			fmt.Sprintf("%s cannot be read, such as %d: %s", atLeast(len(broken)), broken[0].ID, broken[0].Reason),
			"a process that serves the tag sets them to failed",
			fmt.Sprintf("delaytask get %d", broken[0].ID)}}, nil
	}
	return nil, nil
}

// leasesAhead looks for leases that outlast their TTR and whose process is gone, by the last of each tag.
func (s *Subject) leasesAhead(ctx context.Context) ([]Finding, error) {
	nodes, reading, err := s.Store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := s.Store.FirstDue(ctx, row.Span{Status: row.Executing, From: reading.Time, Down: true})
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	slices.SortFunc(tags, func(a, b row.TagCount) int { return cmp.Compare(b.Oldest, a.Oldest) })
	tags = tags[:min(len(tags), sampled)]
	var spans []row.Span
	for _, t := range tags {
		spans = append(spans, row.Span{Status: row.Executing, Tag: t.Tag, From: reading.Time, Down: true})
	}
	places, err := s.Store.Places(ctx, spans, sampled)
	if err != nil {
		return nil, err
	}
	last := slices.Concat(places...)
	slices.SortFunc(last, func(a, b row.Place) int { return b.Compare(a) })
	ids := make([]int64, 0, sampled)
	for _, p := range last[:min(len(last), sampled)] {
		ids = append(ids, p.ID)
	}
	rows, _, err := s.Store.Rows(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	ahead := slices.DeleteFunc(rows, func(r row.Row) bool {
		return !cluster.IsAhead(r.Executor, r.Due, r.TTR, nodes, reading.Time)
	})
	if len(ahead) == 0 {
		return nil, nil
	}
	return []Finding{{"leases_ahead", Critical,
		fmt.Sprintf("%s of processes that are gone with a lease of another %s, such as %d", atLeast(len(ahead)),
			span(ahead[0].Due.Sub(reading.Time)), ahead[0].ID),
		"the database's clock was set back since the claim; no rescue takes such tasks back until the leases end",
		s.endLeases(ahead)}}, nil
}

// endLeases is the statement that lets a rescue take the tasks at once. A higher version shuts out an executor that
// lives after all.
func (s *Subject) endLeases(rows []row.Row) string {
	now := "UTC_TIMESTAMP(6)"
	if s.Kind == sqlstore.SQLite {
		now = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
	}
	which := make([]string, len(rows))
	for i, r := range rows {
		which[i] = fmt.Sprintf("id = %d AND version = %d", r.ID, r.Version)
	}
	return fmt.Sprintf("UPDATE delay_task_message SET due_time = %s, version = version + 1 WHERE status = %d"+
		" AND (%s)", now, row.Executing, strings.Join(which, " OR "))
}

// atLeast counts a sample.
func atLeast(n int) string {
	switch n {
	case 1:
		return "1 task"
	case sampled:
		return fmt.Sprintf("%d tasks or more", n)
	default:
		return fmt.Sprintf("%d tasks", n)
	}
}

// checkPurge looks for finished tasks that should be deleted by now.
func checkPurge(ctx context.Context, s *Subject) (found []Finding, err error) {
	reading, err := s.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	for _, status := range []row.Status{row.Completed, row.Failed, row.Cancelled} {
		retention := s.Retention[status]
		if retention <= 0 {
			continue
		}
		oldest, err := s.Store.Oldest(ctx, status)
		if err != nil {
			return found, err
		}
		var behind late
		for _, of := range oldest {
			if by := reading.Time.Sub(of.Oldest) - retention; !of.Oldest.IsZero() && by >= purgeAfter {
				behind.add(of.Tag, by)
			}
		}
		if len(behind.tags) > 0 {
			found = append(found, Finding{"purge_behind", Warning,
				fmt.Sprintf("%s tasks are %s past their retention of %s: %s", status, span(behind.by), span(retention),
					few(behind.tags)),
				"the table grows: only running processes delete, and each by its own retention", startOne})
		}
	}
	return found, nil
}
