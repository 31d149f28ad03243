//go:build sabotage

package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sabotage"
)

// unexplained is what a history says that is not linearizable.
const unexplained = "no order of what was done to it explains what was told"

// TestEveryRemovedCheckIsNoticed plays the seeds once more for each of the checks that keep the promises, without it:
// the judge has to notice within the seeds that every test run plays, and where the versions of a row are at stake, its
// history too.
func TestEveryRemovedCheckIsNoticed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[sabotage.Check][]string{
		sabotage.Fence: {"promise 4", unexplained}, sabotage.Guard: {"promise 4", unexplained},
		sabotage.Rescue: {"promise 8"}, sabotage.Early: {"promise 5"},
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
