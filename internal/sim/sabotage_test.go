//go:build sabotage

package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/sabotage"
)

// TestEveryRemovedCheckIsNoticed plays the seeds once more for each of the checks that keep the promises, without it: the judge
// has to notice within the seeds that every test run plays.
func TestEveryRemovedCheckIsNoticed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for check, promise := range map[sabotage.Check]string{
		sabotage.Fence: "promise 4", sabotage.Guard: "promise 4", sabotage.Rescue: "promise 8", sabotage.Early: "promise 5",
	} {
		t.Run(string(check), func(t *testing.T) {
			play := exec.CommandContext(t.Context(), program, "-test.run=^TestSeeds$", "-sim.seeds=200")
			play.Env = append(os.Environ(), sabotage.Variable+"="+string(check), "TMPDIR="+t.TempDir())
			said, err := play.CombinedOutput()
			if err == nil || !strings.Contains(string(said), promise) {
				t.Errorf("want %s broken, got %v: %s", promise, err, said)
			}
			t.Log(string(said[max(0, len(said)-800):]))
		})
	}
}
