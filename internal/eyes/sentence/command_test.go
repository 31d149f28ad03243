package sentence

import (
	"os/exec"
	"testing"
)

func TestACommandIsTakenByAShellAsItIsMeant(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"delaytask resume mail.send":                    Command("resume") + " " + Argument("mail.send"),
		"delaytask resume -- -x":                        Command("resume") + " " + Argument("-x"),
		"delaytask list --tag -x":                       Command("list", "status", "", "tag", "-x"),
		`delaytask list --tag 'a b' --key 'it'\''s'`:    Command("list", "tag", "a b", "key", "it's"),
		"delaytask schedule pause --reason … -- '-x y'": Command("schedule pause") + " --reason … " + Argument("-x y"),
	} {
		if text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("this machine has no sh")
	}
	for _, s := range []string{
		"", "-x", "a b", "it's", "$HOME", "`id`", "a\nb", `\`, "*", "~", "#x", "任务", "a;b", "!x",
	} {
		out, err := exec.CommandContext(t.Context(), sh, "-c", "printf %s "+Word(s)).Output()
		if got := string(out); err != nil || got != s {
			t.Errorf("the shell takes %q as %q: %v", s, got, err)
		}
	}
}
