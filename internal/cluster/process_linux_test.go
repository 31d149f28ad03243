package cluster

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

// TestProcessHiddenFromOtherUsersIsNotGone looks at this process as an unprivileged user, on a /proc that hides it.
func TestProcessHiddenFromOtherUsersIsNotGone(t *testing.T) {
	const key = "CLUSTER_HIDDEN"
	if text := os.Getenv(key); text != "" {
		var n row.Node
		mustOK(t, json.Unmarshal([]byte(text), &n))
		self := NewProcess()
		if self.Host != n.Host {
			t.Fatalf("it is on %q, and this on %q", n.Host, self.Host)
		}
		if _, err := startTime(n.PID); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("the hidden process: %v", err)
		}
		if self.Gone(n) {
			t.Error("a process that others may not see is gone")
		}
		return
	}
	t.Parallel()
	node, err := json.Marshal(asNode(NewProcess()))
	mustOK(t, err)
	const hide = "mount -t proc -o hidepid=2 proc /proc"
	if out, err := exec.Command("unshare", "--mount", "sh", "-c", hide).CombinedOutput(); err != nil {
		t.Skipf("processes cannot be hidden here: %v: %s", err, out)
	}
	program, err := os.ReadFile(os.Args[0])
	mustOK(t, err)
	file, err := os.CreateTemp("", "cluster-*.test") // where every user may read it
	mustOK(t, err)
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	_, err = file.Write(program)
	mustOK(t, errors.Join(err, file.Chmod(0o755), file.Close()))
	asOther := hide + " && cd / && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$1\""
	look := exec.Command("unshare", "--mount", "sh", "-c", asOther, file.Name(), "-test.run=^"+t.Name()+"$")
	look.Env = append(os.Environ(), key+"="+string(node))
	if out, err := look.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestStartTimeIsReadBehindTheName(t *testing.T) {
	t.Parallel()
	const tail = " S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3\n"
	for _, name := range []string{"delaytask", "a b", ") S 1 (", "((("} {
		if got, err := parseStartTime([]byte("42 (" + name + ")" + tail)); err != nil || got != 987654 {
			t.Errorf("program %q: start time %d, %v; want 987654", name, got, err)
		}
	}
	for _, bad := range []string{"", "42 (x) S 1 2", "42 (x) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 soon 1 2"} {
		if got, err := parseStartTime([]byte(bad)); err == nil {
			t.Errorf("%q gave %d, want an error", bad, got)
		}
	}
}
