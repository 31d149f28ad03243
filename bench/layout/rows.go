package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const executorLine = "executor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''\n"

// executors are forms of what a claim writes about its executor.
var executors = []form{
	{name: "text"},
	{name: "text, default 50 bytes", change: replaced(executorLine,
		"executor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT"+
			" '"+fmt.Sprintf("%50s", "-")+"'\n")},
	{name: "text and filler", change: replaced(executorLine,
		"filler VARBINARY(80) NOT NULL DEFAULT (SPACE(70)), "+executorLine), claim: textExecutor + ", filler = ''"},
	{name: "numbers", change: replaced(executorLine,
		"process BIGINT UNSIGNED NOT NULL DEFAULT 0, claim BIGINT UNSIGNED NOT NULL DEFAULT 0, "+executorLine),
		claim: "process = 1311768467294899695, claim = 4711, ip_address = 2130706433"},
	{name: "numbers, times with room", change: func(ddl string) string {
		ddl = replaced(executorLine,
			"process BIGINT UNSIGNED NOT NULL DEFAULT 0, claim BIGINT UNSIGNED NOT NULL DEFAULT 0, "+executorLine)(ddl)
		ddl = replaced("execution_time DATETIME(6) NULL\n", "execution_time DATETIME(6) NOT NULL DEFAULT"+
			" '1000-01-01'\n")(ddl)
		return replaced("finish_time DATETIME(6) NULL\n", "finish_time DATETIME(6) NOT NULL DEFAULT"+
			" '1000-01-01'\n")(ddl)
	}, claim: "process = 1311768467294899695, claim = 4711, ip_address = 2130706433"},
	{name: "numbers, start with room, no finish", change: func(ddl string) string {
		ddl = replaced(executorLine,
			"process BIGINT UNSIGNED NOT NULL DEFAULT 0, claim BIGINT UNSIGNED NOT NULL DEFAULT 0, "+executorLine)(ddl)
		ddl = replaced("execution_time DATETIME(6) NULL\n", "start_time DATETIME(6) NOT NULL DEFAULT"+
			" '1970-01-01', execution_time"+
			" DATETIME(6) GENERATED ALWAYS AS (NULLIF(start_time, '1970-01-01')) VIRTUAL\n")(ddl)
		ddl = replaced("finish_time DATETIME(6) NULL\n", "end_time TINYINT NULL\n")(ddl)
		return replaced("PRIMARY KEY (id)", "finish_time DATETIME(6) GENERATED ALWAYS AS"+
			" (CASE WHEN status IN (1, 2, 4) THEN due_time END) VIRTUAL, PRIMARY KEY (id)")(ddl)
	}, claim: "process = 1311768467294899695, claim = 4711, ip_address = 2130706433, start_time = CASE WHEN" +
		" start_time > '1970-01-01'" +
		" THEN start_time ELSE GREATEST(UTC_TIMESTAMP(6), due_time) END", generated: true},
	{name: "numbers and filler", change: replaced(executorLine,
		"filler VARBINARY(80) NOT NULL DEFAULT (SPACE(20)), process BIGINT UNSIGNED NOT NULL DEFAULT 0, claim"+
			" BIGINT UNSIGNED NOT NULL DEFAULT 0, "+executorLine),
		claim: "process = 1311768467294899695, claim = 4711, ip_address = 2130706433, filler = ''"},
}

// rows drains tables of each form, in turns: what saves, claims and settles take, and what is left.
func (b *bench) rows() error { return b.drained(executors, nil) }

// ids drains tables whose ids carry a place, against ids that only count.
func (b *bench) ids() error {
	forms := []form{{name: "time, node, sequence"}, {name: "place in the low byte, in turns"}, {name: "place in" +
		" the low byte, by key"},
		{name: "place by key, each statement in order"}}
	ms, seq, places := time.Now().UnixMilli()-1577836800000, int64(0), map[int64]int64{}
	next := func() { // 20 ids a millisecond: as many as one process saves
		if seq++; seq%20 == 0 {
			ms++
			clear(places)
		}
	}
	placed := func(place int64) int64 {
		next()
		places[place]++
		return ms<<22 | 3<<12 | places[place]<<8 | place
	}
	return b.drained(forms, map[string]func() int64{
		forms[0].name: func() int64 { next(); return ms<<22 | 3<<12 | seq&0xfff },
		forms[1].name: func() int64 { return placed(seq & 0xff) },
		forms[2].name: func() int64 { return placed(rand.Int64N(256)) },
		forms[3].name: func() int64 { return placed(rand.Int64N(256)) },
	})
}

func (b *bench) drained(forms []form, ids map[string]func() int64) error {
	type sums struct {
		save, claim, settle          []time.Duration
		cpuSave, cpuClaim, cpuSettle time.Duration
		redo                         int64
	}
	const batches, size = 6, 500 // of a round
	all := make([]sums, len(forms))
	for _, f := range forms {
		if err := b.make(f); err != nil {
			return err
		}
	}
	tag := func(i int) string { return fmt.Sprintf("tag.%d", i%10) }
	for round := range b.rounds {
		for i := range forms {
			i = (i + round) % len(forms)
			f, s := forms[i], &all[i]
			id := ids[f.name]
			if id == nil {
				id = b.sequential
			}
			before, err := b.status()
			if err != nil {
				return err
			}
			var groups [][]int64
			for _, phase := range []struct {
				times *[]time.Duration
				cpu   *time.Duration
				do    func(batch int) error
			}{
				{&s.save, &s.cpuSave, func(int) error {
					ids, err := b.insert(f, size, tag, "UTC_TIMESTAMP(6)", id)
					groups = append(groups, ids)
					return err
				}},
				{&s.claim, &s.cpuClaim, func(n int) error { return b.claim(f, groups[n], int64(n)) }},
				{&s.settle, &s.cpuSettle, func(n int) error { return b.settle(f, groups[n]) }},
			} {
				cpu := b.cpu()
				for n := range batches {
					took, err := b.timed(func() error { return phase.do(n) })
					if err != nil {
						return err
					}
					*phase.times = append(*phase.times, took)
				}
				*phase.cpu += b.cpu() - cpu
			}
			after, err := b.status()
			if err != nil {
				return err
			}
			s.redo += after[counted[0]] - before[counted[0]]
		}
	}
	n := float64(b.rounds * batches * size)
	us := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1e6/n) }
	b.printf("form\tsave 500: ms\tclaim\tsettle\tserver, µs a row: save\tclaim\tsettle" +
		"\tredo, bytes a row\tfile, bytes a row\t\n")
	for i, f := range forms {
		s := all[i]
		var file int64
		if err := b.db.QueryRowContext(b.ctx, "SELECT file_size FROM information_schema."+b.spaces()+
			" WHERE name LIKE ?", "delaytask_layout/"+f.table()).Scan(&file); err != nil {
			return err
		}
		b.printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t\n", f.name, ms(median(s.save)),
			ms(median(s.claim)),
			ms(median(s.settle)), us(s.cpuSave), us(s.cpuClaim), us(s.cpuSettle), float64(s.redo)/n, float64(file)/n)
	}
	return nil
}

// spaces is the table that knows the sizes of files.
func (b *bench) spaces() string {
	if b.exec("SELECT 1 FROM information_schema.INNODB_TABLESPACES LIMIT 1") == nil {
		return "INNODB_TABLESPACES"
	}
	return "INNODB_SYS_TABLESPACES"
}
