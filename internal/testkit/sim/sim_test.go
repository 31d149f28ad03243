package sim

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
)

var (
	seeds = flag.Int("sim.seeds", 0, "how many seeds to play; 0: 200, or 20 with the race detector")
	first = flag.Uint64("sim.seed", 1, "the first seed")
	step  = flag.Uint64("sim.step", 1, "from one seed to the next")
	times = flag.Int("sim.times", 1, "play every seed so often")
	asked = flag.Bool("sim.json", false, "print the totals as JSON")
)

// enough is how many seeds with a violation end the test, unless the totals are asked for.
const enough = 5

// playSeeds plays clusters under faults, each fixed by a seed, and judges their journals.
func playSeeds(t *testing.T, usual int) {
	n := cmp.Or(*seeds, usual)
	var mu sync.Mutex
	var next atomic.Uint64
	var totals Totals
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					mu.Lock()
					full := len(totals.Failed) >= enough && *times == 1 && !*asked
					mu.Unlock()
					if full || i >= uint64(n)*uint64(*times) {
						return
					}
					seed := *first + i/uint64(*times)**step
					t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
						v := playOnce(t, seed)
						mu.Lock()
						defer mu.Unlock()
						totals.add(seed, v)
					})
				}
			})
		}
	})
	if *asked {
		fmt.Println(totals.JSON())
		return
	}
	fmt.Println(totals.String())
	if *times > 1 {
		fmt.Printf("%d of %d runs have a violation\n", len(totals.Failed), totals.Seeds)
	}
}

// playOnce plays and judges a seed. It keeps the journal of a violation, because the seed may pass the next time.
func playOnce(t *testing.T, seed uint64) judge.Verdict {
	events := playIn(t, seed)
	v := judge.Judge(events, Rules)
	if v.Total() == 0 {
		return v
	}
	for _, violation := range v.Violations[:min(len(v.Violations), 10)] {
		t.Errorf("seed %d: %v", seed, violation)
	}
	for _, violation := range v.Unexplained[:min(len(v.Unexplained), 10)] {
		t.Errorf("seed %d: %v", seed, violation)
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("delaytask-sim-%d.jsonl", seed))
	keep(t, file, events)
	t.Logf("seed %d: %d violations. What happened: go run ./test/lab judge %s; again: make sim SEED=%d TIMES=1000",
		seed, v.Total(), file, seed)
	return v
}

func playIn(t *testing.T, seed uint64) (events []journal.Event) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { events = play(seed) })
	return events
}

func keep(t *testing.T, file string, events []journal.Event) {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(journal.WriteTo(out, events), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalIsJudgedTheSameFromItsFile(t *testing.T) {
	t.Parallel()
	events, file := playIn(t, 7), filepath.Join(t.TempDir(), "journal")
	keep(t, file, events)
	again, err := journal.ReadFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := judge.RulesOf(again)
	if err != nil || !reflect.DeepEqual(rules, Rules) {
		t.Fatalf("got the rules %+v, %v", rules, err)
	}
	a, b := judge.Judge(events, Rules), judge.Judge(again, rules)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("from memory %+v, from the file %+v", a, b)
	}
	if a.Counts.Executions == 0 || a.Counts.Nodes < 2 || a.Linear.Operations == 0 {
		t.Errorf("the seed shows nothing: %+v", a)
	}
}

func TestDrawsDependOnTheQuestionAndTheNumbersAlone(t *testing.T) {
	t.Parallel()
	if a, b := rng(1).draw("q", 1, 2).Uint64(), rng(1).draw("q", 1, 2).Uint64(); a != b {
		t.Error("the same question was answered twice")
	}
	seen := map[uint64]string{}
	for seed := range rng(50) {
		for _, q := range []string{"q", "r"} {
			for i := range 10 {
				for j := range 10 {
					name := fmt.Sprint(seed, q, i, j)
					answer := seed.draw(q, i, j).Uint64()
					if other, met := seen[answer]; met {
						t.Fatalf("%s is answered as %s", name, other)
					}
					seen[answer] = name
				}
			}
		}
	}
}

// TestMain collects garbage rarely: a seed makes much of it and keeps little. The journals of a run are some megabytes,
// so a sound run does not reach the limit.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(2 << 30)
	}
	os.Exit(m.Run())
}
