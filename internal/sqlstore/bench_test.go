package sqlstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// BenchmarkBuild makes the statements that carry most of the load, for batches of several sizes.
func BenchmarkBuild(b *testing.B) {
	const executor = "host.example.com:12345:J5NCQMUZ3KQ7L4XE:17"
	body := []byte(strings.Repeat("x", 100))
	for _, n := range []int{1, 64, 500} {
		rows, changes, c := make([]row.Row, n), make([]row.Change, n), row.Claim{Executor: executor}
		for i := range rows { // due a microsecond apart
			id, due := int64(i)+1, row.At(time.Now())+row.Time(i)
			rows[i] = row.Row{ID: id, Tag: "bench", Body: body, MaxAttempts: 20, TTR: 15 * time.Second, Expected: due, Due: due}
			c.Rows = append(c.Rows, row.Ref{ID: id})
			finish := due.Add(time.Millisecond)
			changes[i] = row.Change{ID: id, Version: 1, From: row.Executing, To: row.Completed, Due: finish, Attempt: 1,
				Execution: due, Finish: finish, Executor: executor}
		}
		for _, kind := range []Kind{MySQL, SQLite} {
			d := dialectOf(kind)
			for name, build := range map[string]func(){
				"insert": func() { d.insert(rows) }, "claim": func() { d.claim(c) }, "settle": func() { d.update(changes) },
			} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, kind, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						build()
					}
				})
			}
		}
	}
}
