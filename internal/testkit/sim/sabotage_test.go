//go:build sabotage

package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sabotage"
)

// unexplained is the violation of a history that is not linearizable.
const unexplained = "its history is not linearizable"

// TestEveryRemovedCheckIsNoticed plays the seeds of every test run again without each of the checks that keep the
// invariants. The judge has to notice, and for a check of versions the histories too.
func TestEveryRemovedCheckIsNoticed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[sabotage.Check][]string{
		sabotage.Fence: {"invariant 4", unexplained}, sabotage.Guard: {"invariant 4", unexplained},
		sabotage.Rescue: {"invariant 8"}, sabotage.Early: {"invariant 5"},
		sabotage.Decide: {"invariant 13"}, sabotage.Alone: {"invariant 14"}, sabotage.Replace: {"invariant 14"},
		sabotage.Overlap: {"invariant 16"},
	} {
		t.Run(string(check), func(t *testing.T) {
			play := exec.CommandContext(t.Context(), program, "-test.run=^TestSeeds$", "-sim.seeds=200")
			play.Env = append(os.Environ(), sabotage.Variable+"="+string(check), "TMPDIR="+t.TempDir())
			said, err := play.CombinedOutput()
			for _, notice := range want {
				if err == nil || !strings.Contains(string(said), notice) {
					t.Errorf("want %q, got %v: %s", notice, err, said)
				}
			}
			t.Log(string(said[max(0, len(said)-800):]))
		})
	}
}
