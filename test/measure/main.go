// Measure repeats the measurements behind the decisions in docs/adr: which index serves delay_task_message best, and which form
// of the batched settle statement, and how the members of a cluster claim.
//
//	go run ./test/measure -dsn 'root@tcp(127.0.0.1:3306)/delaytask' -what index
//
// It makes databases of its own beside the one that the DSN names, delaytask_measure_…, and drops them at the end. The tables of
// results go to standard output as Markdown, the progress to standard error. Candidates take turns within one run, so whatever
// else the machine does falls on all of them alike: compare the figures of a line, not those of two runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
)

type settings struct {
	dsn     string
	members string
	table   string
	rows    int
	rounds  int
}

func main() {
	var s settings
	flag.StringVar(&s.dsn, "dsn", "", "MySQL or MariaDB server, as `user:password@tcp(host:port)/database`")
	flag.StringVar(&s.members, "members", "", "with members: `DSNs` of the other members of the cluster, separated by commas")
	what := flag.String("what", "index", "`measurement` to repeat: index, settle or members")
	flag.StringVar(&s.table, "table", "", "with index: only tables whose name contains `text`, as in -table '300 tags'")
	flag.IntVar(&s.rows, "rows", 1_000_000, "rows of the large tables, at most 1,000,000")
	flag.IntVar(&s.rounds, "rounds", 7, "how often every candidate has its turn")
	flag.Parse()

	measurements := map[string]func(context.Context, settings) error{
		"index": measureIndexes, "settle": measureSettles, "members": measureMembers,
	}
	measure := measurements[*what]
	if s.dsn == "" || measure == nil || s.rows < 1 || s.rows > 1_000_000 || s.rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		stop()
		os.Exit(1)
	}
}

// report writes a table and what it was measured on to standard output.
func report(server string, rounds int, table string) error {
	_, err := fmt.Fprintf(os.Stdout, "%s; %d rounds; milliseconds, median (fastest)\n\n%s\n", server, rounds, table)
	return err
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// names lists what the items are called, in their order.
func names[T any](items []T, name func(T) string) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, item := range items {
			if !yield(name(item)) {
				return
			}
		}
	})
}
