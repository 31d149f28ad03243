package netns

import (
	"errors"
	"net"
	"os/exec"
	"testing"
)

func TestPulledCableIsSilent(t *testing.T) {
	ctx := t.Context()
	n, err := New(ctx)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := n.Add(ctx)
	defer func() {
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", n.Addr()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The shell's exit code is 0 when it is connected, 1 when it is refused, and 124 without an answer.
	dial := func(limit string) int {
		cmd := exec.CommandContext(ctx, "ip", "netns", "exec", name, "timeout", limit,
			"bash", "-c", "</dev/tcp/"+n.Addr()+"/"+port)
		_ = cmd.Run() // its code tells
		return cmd.ProcessState.ExitCode()
	}
	if code := dial("20"); code != 0 {
		t.Errorf("connected to its machine: exit code %d", code)
	}
	if err := n.Pull(ctx, name); err != nil {
		t.Fatal(err)
	}
	if code := dial("1"); code != 124 {
		t.Errorf("without its cable: exit code %d, want a silence that ends with the patience", code)
	}
	if err := n.Plug(ctx, name); err != nil {
		t.Fatal(err)
	}
	if code := dial("20"); code != 0 {
		t.Errorf("with its cable again: exit code %d", code)
	}
}
