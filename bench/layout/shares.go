package main

import (
	"fmt"
	"strings"
	"time"
)

// shares has n nodes look ahead, each for its share, in the ways that the indexes allow: what the server reads.
func (b *bench) shares() error {
	if err := b.filled(indexes); err != nil {
		return err
	}
	for _, f := range indexes { // 200 tasks a second for the next ten minutes
		for s := range 600 {
			if _, err := b.insert(f, 200, tagOf, fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d"+
				" MICROSECOND", s*1_000_000+s*1000), b.sequential); err != nil {
				return err
			}
		}
	}
	const tagsRead = 20
	b.printf("nodes\tway\tms of all nodes\tserver ms\tindex entries read\trows sent\t\n")
	for _, nodes := range []int{1, 3, 10, 30} {
		for way := range 4 {
			f := []form{indexes[1], indexes[1], indexes[3], indexes[4]}[way]
			name := []string{"all rows to all", "filter by share", "index by share", "index by second, share"}[way]
			before, err := b.status()
			if err != nil {
				return err
			}
			cpu, begin, sent := b.cpu(), time.Now(), 0
			const rounds = 5
			for range rounds {
				for node := range nodes {
					low, high := 64*node/nodes, 64*(node+1)/nodes
					var branches []string
					for i := range tagsRead {
						where := "status = 0 AND tag = '" + tagOf(i) + "' AND due_time >= UTC_TIMESTAMP(6) AND" +
							" due_time < UTC_TIMESTAMP(6) + INTERVAL 2 SECOND"
						switch way {
						case 1:
							where += fmt.Sprintf(" AND id & 63 >= %d AND id & 63 < %d", low, high)
						case 2:
							where += " AND share IN (" + numbers(low, high) + ")"
						case 3:
							where += " AND second BETWEEN TO_SECONDS(UTC_TIMESTAMP()) AND" +
								" TO_SECONDS(UTC_TIMESTAMP()) + 2"
							if nodes > 1 {
								where = strings.Replace(where, "BETWEEN TO_SECONDS(UTC_TIMESTAMP()) AND"+
									" TO_SECONDS(UTC_TIMESTAMP()) + 2",
									"IN (TO_SECONDS(UTC_TIMESTAMP()), TO_SECONDS(UTC_TIMESTAMP()) + 1,"+
										" TO_SECONDS(UTC_TIMESTAMP()) + 2)", 1)
								where += " AND share IN (" + numbers(low, high) + ")"
							}
						}
						branches = append(branches, "(SELECT id, version, tag, due_time, priority, crash_count"+
							" FROM "+f.table()+
							" FORCE INDEX ("+f.table()+"_due) WHERE "+where+" ORDER BY due_time, id LIMIT 1000)")
					}
					found, err := b.query(strings.Join(branches, " UNION ALL "))
					if err != nil {
						return err
					}
					sent += found
				}
			}
			wall := time.Since(begin)
			after, err := b.status()
			if err != nil {
				return err
			}
			diff := func(name string) int64 { return (after[name] - before[name]) / rounds }
			b.printf("%d\t%s\t%s\t%s\t%d\t%d\t\n", nodes, name, ms(wall/rounds), ms((b.cpu()-cpu)/rounds),
				diff("Handler_read_next")+diff("Handler_read_key"), sent/rounds)
		}
	}
	return nil
}

func numbers(low, high int) string {
	var all []string
	for n := low; n < high; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return strings.Join(all, ", ")
}
