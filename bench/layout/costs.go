package main

import (
	"fmt"
	"strings"
	"time"
)

const shareLine = "executor VARCHAR(255)"

// indexes are what costs compares.
var indexes = append(orders[:len(orders):len(orders)],
	form{name: "tag, status, due_time, group", change: func(ddl string) string {
		ddl = replaced(shareLine, "group_id BIGINT UNSIGNED NOT NULL DEFAULT 0, "+shareLine)(ddl)
		return replaced(dueIndex, "KEY delay_task_message_due (tag, status, due_time, group_id)")(ddl)
	}},
	form{name: "tag, status, share, due_time", change: func(ddl string) string {
		ddl = replaced(" AUTO_INCREMENT", "")(ddl) // MariaDB computes no column from it; a save would write the share
		ddl = replaced(shareLine, "share TINYINT UNSIGNED GENERATED ALWAYS AS (id & 63) VIRTUAL, "+shareLine)(ddl)
		return replaced(dueIndex, "KEY delay_task_message_due (tag, status, share, due_time)")(ddl)
	}},
	form{name: "tag, status, second, share, due_time", change: func(ddl string) string {
		ddl = replaced(" AUTO_INCREMENT", "")(ddl) // MariaDB computes no column from it; a save would write the share
		ddl = replaced("PRIMARY KEY (id)", "share TINYINT UNSIGNED GENERATED ALWAYS AS (id & 63) VIRTUAL,"+
			" second BIGINT GENERATED"+
			" ALWAYS AS (TO_SECONDS(due_time)) VIRTUAL, PRIMARY KEY (id)")(ddl)
		return replaced(dueIndex, "KEY delay_task_message_due (tag, status, second, share, due_time)")(ddl)
	}},
)

const tags = 100

func tagOf(i int) string { return fmt.Sprintf("tag.%03d", i%tags) }

// filled makes the tables of forms, each with the history, rows that fall due within the hour and ended leases.
func (b *bench) filled(forms []form) error {
	for _, f := range forms {
		if err := b.make(f); err != nil {
			return err
		}
		for range b.history / 1000 {
			ids, err := b.insert(f, 1000, tagOf, "UTC_TIMESTAMP(6) - INTERVAL 1 DAY", b.sequential)
			if err != nil {
				return err
			}
			if err := b.exec("UPDATE " + f.table() + " SET status = 1, version = 2 WHERE id IN" +
				" (" + list(ids) + ")"); err != nil {
				return err
			}
		}
		for i := range 20 {
			due := fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d SECOND", 180*i+600)
			if _, err := b.insert(f, 500, tagOf, due, b.sequential); err != nil {
				return err
			}
		}
		ids, err := b.insert(f, 20, tagOf, "UTC_TIMESTAMP(6)", b.sequential)
		if err == nil {
			err = b.exec("UPDATE " + f.table() + " SET status = 3, version = 1 WHERE id IN (" + list(ids) + ")")
		}
		if err == nil {
			err = b.exec("ANALYZE TABLE " + f.table())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// costs times what the store does with each index, on a table with a history and a hundred tags.
func (b *bench) costs() error {
	if err := b.filled(indexes); err != nil {
		return err
	}
	names := []string{"save 500", "claim 500", "settle 500", "window", "overdue", "ended leases", "executing of" +
		" a process", "oldest by tag"}
	all := make([]map[string][]time.Duration, len(indexes))
	for i := range all {
		all[i] = map[string][]time.Duration{}
	}
	branch := func(f form, where, order string) string {
		return "(SELECT id, version, tag, due_time, priority, crash_count FROM " + f.table() + " FORCE INDEX" +
			" (" + f.table() +
			"_due) WHERE " + where + " ORDER BY " + order + " LIMIT 1000)"
	}
	union := func(f form, where func(tag string) string) string {
		var branches []string
		for i := range 20 {
			branches = append(branches, branch(f, where(tagOf(i)), "due_time, id"))
		}
		return strings.Join(branches, " UNION ALL ")
	}
	window := func(tag string) string {
		return "status = 0 AND tag = '" + tag + "' AND due_time >= UTC_TIMESTAMP(6) AND due_time <" +
			" UTC_TIMESTAMP(6) + INTERVAL 700 SECOND"
	}
	overdue := func(tag string) string { return "status = 0 AND tag = '" + tag + "' AND due_time < UTC_TIMESTAMP(6)" }
	for round := range b.rounds {
		for i := range indexes {
			i = (i + round) % len(indexes)
			f := indexes[i]
			led := !strings.HasPrefix(f.name, "status")
			var ids []int64
			var every []string // tags, for reads that name none
			for t := range tags {
				every = append(every, "'"+tagOf(t)+"'")
			}
			inAll := ""
			if led {
				inAll = " AND tag IN (" + strings.Join(every, ", ") + ")"
			}
			for _, name := range names {
				took, err := b.timed(func() (err error) {
					switch name {
					case "save 500":
						ids, err = b.insert(f, 500, tagOf, "UTC_TIMESTAMP(6) + INTERVAL 2 HOUR", b.sequential)
					case "claim 500":
						err = b.claim(f, ids, int64(round))
					case "settle 500":
						err = b.settle(f, ids)
					case "window":
						_, err = b.query(union(f, window))
					case "overdue":
						_, err = b.query(union(f, overdue))
					case "ended leases":
						_, err = b.query(branch(f, "status = 3 AND due_time < UTC_TIMESTAMP(6)"+inAll, "due_time, id"))
					case "executing of a process":
						_, err = b.query("SELECT id FROM " + f.table() + " FORCE INDEX (" + f.table() + "_due)" +
							" WHERE status = 3" + inAll +
							" AND executor LIKE 'x%' ORDER BY id LIMIT 500")
					case "oldest by tag":
						_, err = b.query("SELECT tag, MIN(due_time) FROM " + f.table() + " FORCE INDEX" +
							" (" + f.table() + "_due) WHERE status = 1" + inAll + " GROUP BY tag")
					}
					return err
				})
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				all[i][name] = append(all[i][name], took)
			}
		}
	}
	b.printf("ms, median (fastest)\t")
	for _, f := range indexes {
		b.printf("%s\t", f.name)
	}
	b.printf("\n")
	for _, name := range names {
		b.printf("%s\t", name)
		for i := range indexes {
			b.printf("%s (%s)\t", ms(median(all[i][name])), ms(fastest(all[i][name])))
		}
		b.printf("\n")
	}
	return nil
}

// query reads all rows of an answer, and counts them.
func (b *bench) query(q string) (n int, err error) {
	rows, err := b.db.QueryContext(b.ctx, q)
	if err != nil {
		return 0, fmt.Errorf("%.300s: %w", q, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
